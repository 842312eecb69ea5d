// The blobs of a cache as files, below one folder:
//   blobs/ab/<key>   the entries, by the first two digits of their keys
//   tmp/             what is being written, locked by who writes it
//   damaged/         what was found damaged
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

/// What came of opening a blob. `held` is null unless it is good.
struct OpenedBlob {
  enum class State { kMissing, kGood, kDamaged, kNewer, kUnreadable };
  State state = State::kMissing;
  std::shared_ptr<const Held> held;
  std::string reason;
};

/// A blob that is there.
struct BlobFacts {
  Key key;
  std::uint64_t bytes = 0;
  bool named = false;  // it keeps its name (is_named_blob)
};

enum class RemovalState { kRemoved, kHeld };

/// A file that was written to tmp/; removed unless it is published.
class TemporaryBlob {
 public:
  TemporaryBlob(Disk& disk, std::filesystem::path path, UniqueFd fd)
      : disk_(&disk), path_(std::move(path)), fd_(std::move(fd)) {}
  ~TemporaryBlob();
  TemporaryBlob(TemporaryBlob&& other) noexcept = default;
  TemporaryBlob& operator=(TemporaryBlob&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int fd() const { return fd_.get(); }
  /// It has another name now, and may be evicted and read as any other.
  void published();
  /// Gives back the descriptor of one that is published.
  void close() { fd_.reset(); }

 private:
  Disk* disk_;
  std::filesystem::path path_;
  UniqueFd fd_;
  bool published_ = false;
};

/// Thread-safe, and safe for many processes. Failures of writing are kIo.
class BlobFiles {
 public:
  BlobFiles(std::filesystem::path folder, Disk& disk);

  /// Makes the folders. Throws kIo.
  void make();
  std::filesystem::path path(const Key& key) const;

  /// Reads, checks and maps it. A reader's lock is on the file until the last copy of `held` is gone. Readers keep no
  /// descriptor. Beyond half of the mappings that a process may have, it is read into memory instead.
  OpenedBlob open(const Key& key) const;
  bool exists(const Key& key) const;

  /// The whole blob in tmp/.
  TemporaryBlob write(const Key& key, EncodedBlob& blob);
  /// Gives it its name; whoever opens the key from now on gets it. Adds the folders that changed. 0, or what went wrong
  /// as errno.
  int publish(TemporaryBlob& temporary, const Key& key, std::set<std::filesystem::path>& changed);
  /// Waits until the content of these files is on the disk. 0, or what went wrong as errno.
  int sync_content(std::span<TemporaryBlob* const> files);
  /// The same for files that are published, with their names, which changed these folders. Those whose content is on
  /// the disk already come as `synced`. Where there are no more descriptors, those of the files are given back.
  int sync_published(std::span<TemporaryBlob* const> files, std::span<TemporaryBlob* const> synced,
                     const std::set<std::filesystem::path>& folders);

  /// Takes it away unless somebody reads it; also kRemoved when it is not there.
  RemovalState remove_unheld(const Key& key);
  /// Takes it away; readers keep what they have.
  bool remove(const Key& key);
  /// Into damaged/, of which the latest are kept. False when it was gone already, or may not be moved.
  bool set_aside(const Key& key);
  /// Empties damaged/; how many files that were.
  std::size_t remove_damaged();

  /// Removes what writers left behind that were killed.
  std::size_t sweep();
  /// The parts that a walk over all blobs has (BlobFolder), by the first two digits of their keys.
  static constexpr std::size_t kParts = 256;
  std::filesystem::path folder_of(std::size_t part) const;

 private:
  TemporaryBlob make_temporary(const Key& key);
  bool names_go_with_files();
  OpenedBlob open_file(const std::filesystem::path& file, const Key& key, bool& no_descriptor) const;

  std::filesystem::path folder_;
  Disk& disk_;
  std::once_flag asked_disk_;
  bool names_go_with_files_ = false;
  /// Given up for a moment to read where the process has no descriptor left.
  mutable std::mutex spare_mutex_;
  mutable UniqueFd spare_;
};

}  // namespace unidle::cache::detail
