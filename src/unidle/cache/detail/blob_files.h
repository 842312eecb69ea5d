// The blobs of a cache as files in one folder:
//   blobs/ab/<key>   the entries, by the first two digits of their keys
//   tmp/             files being written, locked by their writers
//   damaged/         damaged blobs
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "unidle/base/disk.h"
#include "unidle/base/handle.h"
#include "unidle/cache/blob.h"
#include "unidle/cache/entry.h"

namespace unidle::cache::detail {

/// The result of opening a blob. `held` is null unless it is good.
struct OpenedBlob {
  enum class State { kMissing, kGood, kDamaged, kNewer, kUnreadable };
  State state = State::kMissing;
  std::shared_ptr<const Held> held;
  std::string reason;
};

/// Facts about a stored blob.
struct BlobFacts {
  Key key;
  std::uint64_t bytes = 0;
  bool named = false;  // it contains its name (is_named_blob)
};

enum class RemovalState { kRemoved, kHeld };

/// A file in tmp/, removed on destruction unless it was published.
class TemporaryBlob {
 public:
  TemporaryBlob(Disk& disk, std::filesystem::path path, UniqueFd fd)
      : disk_(&disk), path_(std::move(path)), fd_(std::move(fd)) {}
  ~TemporaryBlob();
  TemporaryBlob(TemporaryBlob&& other) noexcept = default;
  TemporaryBlob& operator=(TemporaryBlob&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int fd() const { return fd_.get(); }
  /// Marks it as renamed; it may now be read and evicted like any other.
  void published();
  /// Closes the descriptor of a published file.
  void close() { fd_.reset(); }

 private:
  Disk* disk_;
  std::filesystem::path path_;
  UniqueFd fd_;
  bool published_ = false;
};

/// Thread-safe, also across processes. Write failures are kIo.
class BlobFiles {
 public:
  BlobFiles(std::filesystem::path folder, Disk& disk);

  /// Creates the folders. Throws kIo.
  void make();
  std::filesystem::path path(const Key& key) const;

  /// Reads, verifies and maps a blob. The file has a reader's lock until the last copy of `held` is gone, without
  /// keeping a descriptor. Beyond half of the mappings that a process may have, it is read into memory instead.
  OpenedBlob open(const Key& key) const;
  bool exists(const Key& key) const;

  /// Writes the whole blob to tmp/.
  TemporaryBlob write(const Key& key, EncodedBlob& blob);
  /// Renames it, so that whoever opens the key from now on gets it. Adds the changed folders. Returns 0 or errno.
  int publish(TemporaryBlob& temporary, const Key& key, std::set<std::filesystem::path>& changed);
  /// Waits until the content of these files is on disk. Returns 0 or errno.
  int sync_content(std::span<TemporaryBlob* const> files);
  /// The same for published files and their names, which changed these folders. `synced`: files whose content is
  /// already on disk. When descriptors run out, closes those of the files.
  int sync_published(std::span<TemporaryBlob* const> files, std::span<TemporaryBlob* const> synced,
                     const std::set<std::filesystem::path>& folders);

  /// Removes the blob unless somebody reads it; also kRemoved when it does not exist.
  RemovalState remove_unheld(const Key& key);
  /// Removes the blob; readers keep theirs.
  bool remove(const Key& key);
  /// Moves the blob to damaged/, which keeps the latest ones. Returns false when it is gone or cannot be moved.
  bool set_aside(const Key& key);
  /// Empties damaged/; returns the number of files.
  std::size_t remove_damaged();

  /// Removes files left by killed writers.
  std::size_t sweep();
  /// Number of parts in a walk over all blobs (BlobFolder), by the first two digits of their keys.
  static constexpr std::size_t kParts = 256;
  std::filesystem::path folder_of(std::size_t part) const;

 private:
  TemporaryBlob make_temporary(const Key& key);
  bool sync_includes_names();
  OpenedBlob open_file(const std::filesystem::path& file, const Key& key, bool& no_descriptor) const;

  std::filesystem::path folder_;
  Disk& disk_;
  std::once_flag asked_disk_;
  bool names_go_with_files_ = false;
  /// Released briefly to read when the process has run out of descriptors.
  mutable std::mutex spare_mutex_;
  mutable UniqueFd spare_;
};

}  // namespace unidle::cache::detail
