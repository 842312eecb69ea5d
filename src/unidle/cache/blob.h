// Encodes and parses the bytes of one entry (docs/cache-format.md). Pure: no file access.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unidle/cache/key.h"
#include "unidle/cache/tensor.h"

namespace unidle::cache {

constexpr std::uint32_t kBlobVersion = 1;
/// Each array is aligned to this, in the file and therefore in memory.
constexpr std::size_t kTensorAlignment = 64;

/// A blob to be written, as consecutive pieces. The arrays are not copied, and must outlive it.
struct EncodedBlob {
  std::string head;  // header and table, including padding
  struct Piece {
    std::span<const std::byte> data;
    std::size_t padding;  // zero bytes that follow it
  };
  std::vector<Piece> pieces;
  std::uint64_t bytes = 0;  // total
  bool named = false;
};

/// True when the entry contains its user-given name, which is then the first array.
bool is_named(std::span<const TensorView> tensors);
/// The same for a blob of which only the first kNameBytes, or everything, was read. Ignores the checksum.
constexpr std::size_t kNameBytes = 128;
bool is_named_blob(std::span<const std::byte> begin);

/// Throws kUsage for invalid tensors: duplicate names, a name or shape that is too long, or data whose length does not
/// match type and shape.
EncodedBlob encode_blob(const Key& key, std::span<const TensorView> tensors);

enum class BlobState {
  kGood,
  kDamaged,
  kNewer,  // written by a later version of the format; cannot be judged
};

struct ParsedBlob {
  BlobState state = BlobState::kDamaged;
  std::string reason;               // why it is not good
  std::vector<TensorView> tensors;  // point into the bytes
};

/// Parses `bytes` as the entry of `key`. Reads every byte. Never throws because of the contents.
ParsedBlob parse_blob(std::span<const std::byte> bytes, const Key& key);

}  // namespace unidle::cache
