// The bytes of one entry, as docs/cache-format.md has them. Pure: no files here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unidle/cache/key.h"
#include "unidle/cache/tensor.h"

namespace unidle::cache {

constexpr std::uint32_t kBlobVersion = 1;
/// Each array begins at a multiple of this, in the file and so in memory.
constexpr std::size_t kTensorAlignment = 64;

/// A blob that is to be written: pieces that follow each other. The arrays are not copied, and must outlive it.
struct EncodedBlob {
  std::string head;  // header and table, with the padding behind it
  struct Piece {
    std::span<const std::byte> data;
    std::size_t padding;  // zero bytes behind it
  };
  std::vector<Piece> pieces;
  std::uint64_t bytes = 0;  // of all
  bool named = false;
};

/// An entry that keeps the name that a user gave it has that as its first array.
bool is_named(std::span<const TensorView> tensors);
/// The same of a blob of which only the beginning was read, kNameBytes or all of it. Looks at no checksum.
constexpr std::size_t kNameBytes = 128;
bool is_named_blob(std::span<const std::byte> begin);

/// Throws kUsage when the tensors are no entry: two of a name, a name or a shape that is too long, data that is not as
/// long as type and shape say.
EncodedBlob encode_blob(const Key& key, std::span<const TensorView> tensors);

enum class BlobState {
  kGood,
  kDamaged,
  kNewer,  // written by a later version of the format: not ours to judge
};

struct ParsedBlob {
  BlobState state = BlobState::kDamaged;
  std::string reason;               // of what is not good
  std::vector<TensorView> tensors;  // point into the bytes
};

/// `bytes` as the entry of `key`. Looks at every byte. Never throws for what the bytes hold.
ParsedBlob parse_blob(std::span<const std::byte> bytes, const Key& key);

}  // namespace unidle::cache
