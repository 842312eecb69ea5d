// One of the folders that the blobs of a cache lie in, for those who walk over all of them.
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

/// Not thread-safe. Others may put and take away blobs meanwhile.
class BlobFolder {
 public:
  /// Those of a part, by the first two digits of their keys; none where the folder cannot be read. What is no blob by
  /// its name is passed over. Throws kIo where the process has no descriptor left.
  BlobFolder(const BlobFiles& files, std::size_t part);

  /// In the order of their inodes: mostly that in which they lie on the disk.
  std::span<const Key> keys() const { return keys_; }
  /// Of its file; nothing when it is gone.
  std::optional<std::uint64_t> bytes(const Key& key) const;
  /// Reads its beginning only, and checks nothing. Nothing when it is gone.
  std::optional<BlobFacts> facts(const Key& key) const;
  /// Reads and checks all of it, and keeps nothing. What it is read into grows as needs be.
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
