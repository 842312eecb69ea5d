// The blobs of a cache as files, below one folder:
//   blobs/ab/<key>   the entries, by the first two digits of their keys
//   tmp/             what is being written, locked by who writes it
//   damaged/         what was found damaged
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
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

enum class RemovalState { kRemoved, kHeld };

/// A file in tmp/; removed unless it is published.
class TemporaryBlob {
 public:
  TemporaryBlob(Disk& disk, std::filesystem::path path, UniqueFd fd)
      : disk_(&disk), path_(std::move(path)), fd_(std::move(fd)) {}
  ~TemporaryBlob();
  TemporaryBlob(TemporaryBlob&& other) noexcept = default;
  TemporaryBlob& operator=(TemporaryBlob&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int fd() const { return fd_.get(); }
  /// It has another name now.
  void published();

 private:
  Disk* disk_;
  std::filesystem::path path_;
  UniqueFd fd_;
};

/// Thread-safe, and safe for many processes. Failures of writing are kIo.
class BlobFiles {
 public:
  BlobFiles(std::filesystem::path folder, Disk& disk);

  /// Makes the folders. Throws kIo.
  void make();
  std::filesystem::path path(const Key& key) const;

  /// Reads, checks and maps it. A reader's lock is on the file until the last copy of `held` is gone.
  OpenedBlob open(const Key& key) const;
  bool exists(const Key& key) const;

  /// The whole blob in tmp/.
  TemporaryBlob write(const Key& key, EncodedBlob& blob);
  /// What was written is on the disk, of all of them.
  void sync(std::span<const TemporaryBlob> temporaries);
  /// Gives it its name; whoever opens the key from now on gets it. 0, or what went wrong as errno.
  int publish(TemporaryBlob& temporary, const Key& key);
  /// The names of these keys last, too.
  void sync_names(std::span<const Key> keys);

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
  /// The parts that a walk over all blobs has, by the first two digits of their keys.
  static constexpr std::size_t kParts = 256;
  /// Every blob of a part, in no order, until `each` says false. What is no blob by its name is passed over.
  void each(std::size_t part, const std::function<bool(const Key&, std::uint64_t bytes)>& each) const;

 private:
  TemporaryBlob make_temporary(const Key& key);

  std::filesystem::path folder_;
  Disk& disk_;
};

}  // namespace unidle::cache::detail
