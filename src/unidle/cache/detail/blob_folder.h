// One folder of blobs, for walks over the whole cache.
#pragma once

#include <dirent.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "unidle/base/handle.h"
#include "unidle/cache/detail/blob_files.h"

namespace unidle::cache::detail {

struct CheckedBlob {
  OpenedBlob::State state = OpenedBlob::State::kMissing;
  std::uint64_t bytes = 0;
};

/// Not thread-safe. Blobs may be added and removed concurrently.
class BlobFolder {
 public:
  /// Lists the blobs of a part, by the first two digits of their keys; empty when the folder is unreadable. Skips files
  /// with other names. Throws kIo when the process has run out of descriptors.
  BlobFolder(const BlobFiles& files, std::size_t part);

  /// Ordered by inode, which is mostly their order on disk.
  std::span<const Key> keys() const { return keys_; }
  /// Size of the file; nothing when it is gone.
  std::optional<std::uint64_t> bytes(const Key& key) const;
  /// Reads only its beginning and verifies nothing. Nothing when it is gone.
  std::optional<BlobFacts> facts(const Key& key) const;
  /// Reads and verifies the whole blob without keeping it. `buffer` grows as needed.
  CheckedBlob check(const Key& key, std::vector<std::byte>& buffer) const;

 private:
  struct ListingTraits {
    using Type = DIR*;
    static Type invalid() { return nullptr; }
    static void close(Type listing) { ::closedir(listing); }
  };
  UniqueFd open(const Key& key) const;

  const BlobFiles& files_;
  UniqueHandle<ListingTraits> listing_;
  std::vector<Key> keys_;
};

}  // namespace unidle::cache::detail
