#include "unidle/cache/detail/blob_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::cache::detail {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kDamagedKept = 64;

/// Half of the mappings that the kernel allows a process: when they run out, the program cannot allocate memory.
std::size_t most_mapped() {
  static const std::size_t kMost = [] {
    const auto text = try_read_file("/proc/sys/vm/max_map_count");
    return (text ? std::strtoul(text->c_str(), nullptr, 10) : 65530) / 2;
  }();
  return kMost;
}

/// The mapping keeps the file and its lock open after the descriptor is closed, so readers need no descriptors.
class MappedFile final : public Held {
 public:
  MappedFile(void* address, std::size_t length) : address_(address), length_(length) {
    bytes = length;
    stored = true;
    ++mapped;
  }
  ~MappedFile() override {
    ::munmap(address_, length_);
    --mapped;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> content() const { return {static_cast<const std::byte*>(address_), length_}; }

  static inline std::atomic<std::size_t> mapped{0};  // number in this process

 private:
  void* address_;
  std::size_t length_;
};

/// For file systems that cannot map, and for processes that hold very many entries.
class ReadFile final : public Held {
 public:
  explicit ReadFile(std::size_t length)
      : memory_(static_cast<std::byte*>(::operator new(length, std::align_val_t(kTensorAlignment)))), length_(length) {
    bytes = length;
    stored = true;
  }
  ~ReadFile() override { ::operator delete(memory_, std::align_val_t(kTensorAlignment)); }
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;
  std::span<const std::byte> content() const { return {memory_, length_}; }

  bool read(int fd) {
    std::size_t done = 0;
    while (done < length_) {
      const ssize_t got = ::pread(fd, memory_ + done, length_ - done, static_cast<off_t>(done));
      if (got == 0 || (got < 0 && errno != EINTR)) {
        return false;
      }
      done += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    }
    return true;
  }

 private:
  std::byte* memory_;
  std::size_t length_;
};

/// Never waits. Returns true when it took the lock; without lock support, false with an errno other than EWOULDBLOCK.
bool try_lock_file(int fd, int how) { return ::flock(fd, how | LOCK_NB) == 0; }

/// Unlocks explicitly: a child forked meanwhile has the descriptor too, and would keep the lock.
class WholeFileLock {
 public:
  explicit WholeFileLock(int fd)
      : fd_(fd), taken_(try_lock_file(fd, LOCK_EX)), busy_(!taken_ && errno == EWOULDBLOCK) {}
  ~WholeFileLock() {
    if (taken_) {
      ::flock(fd_, LOCK_UN);
    }
  }
  WholeFileLock(const WholeFileLock&) = delete;
  WholeFileLock& operator=(const WholeFileLock&) = delete;
  bool taken() const { return taken_; }
  /// True when somebody else holds the lock.
  bool busy() const { return busy_; }

 private:
  int fd_;
  bool taken_;
  bool busy_;
};

template <typename File>
OpenedBlob judge(std::shared_ptr<File> file, const Key& key) {
  ParsedBlob parsed = parse_blob(file->content(), key);
  if (parsed.state != BlobState::kGood) {
    return {parsed.state == BlobState::kNewer ? OpenedBlob::State::kNewer : OpenedBlob::State::kDamaged, nullptr,
            std::move(parsed.reason)};
  }
  file->tensors = std::move(parsed.tensors);
  return {OpenedBlob::State::kGood, std::move(file), {}};
}

/// Returns 0 or errno. When folders cannot be synced (some network file systems, missing permission), nothing more can
/// be done for their names.
int sync_folder(Disk& disk, const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) {
    return errno == EMFILE || errno == ENFILE ? errno : 0;
  }
  const int failure = disk.sync(fd.get());
  return failure == EINVAL || failure == EOPNOTSUPP ? 0 : failure;
}

/// Calls work(i), which waits for the disk and does not throw, for each i below `count` on several threads: each wait
/// flushes the disk's cache, and the kernel merges concurrent ones. A thread costs as much as a wait, so two waits use
/// none.
void wait_together(std::size_t count, const std::function<void(std::size_t)>& work) {
  constexpr std::size_t kMostThreads = 16;
  std::atomic<std::size_t> next{0};
  const auto some = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      work(i);
    }
  };
  std::vector<std::jthread> threads;
  try {
    for (std::size_t i = 1; i < std::min(count / 2, kMostThreads); ++i) {
      threads.emplace_back(some);
    }
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): no more threads; the existing ones do it
  }
  some();
}

void make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    throw system_error(ErrorCode::kIo, folder.string(), "cannot be created", errno);
  }
}

}  // namespace

TemporaryBlob::~TemporaryBlob() {
  if (fd_ && !published_) {
    disk_->unlink(path_);
    ::flock(fd_.get(), LOCK_UN);
  }
}

void TemporaryBlob::published() {
  ::flock(fd_.get(), LOCK_UN);
  published_ = true;
}

namespace {

UniqueFd spare_descriptor() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

BlobFiles::BlobFiles(fs::path folder, Disk& disk)
    : folder_(std::move(folder)), disk_(disk), spare_(spare_descriptor()) {}

void BlobFiles::make() {
  make_folders(folder_);
  for (const char* name : {"blobs", "tmp", "damaged"}) {
    make_folder(folder_ / name);
  }
}

fs::path BlobFiles::folder_of(std::size_t part) const { return folder_ / "blobs" / fmt::format("{:02x}", part); }

fs::path BlobFiles::path(const Key& key) const { return folder_of(key.bytes[0]) / key.hex(); }

bool BlobFiles::exists(const Key& key) const { return ::access(path(key).c_str(), F_OK) == 0; }

OpenedBlob BlobFiles::open(const Key& key) const {
  const fs::path file = path(key);
  bool no_descriptor = false;
  OpenedBlob opened = open_file(file, key, no_descriptor);
  if (no_descriptor) {
    // Another thread's open may take the spare descriptor before this one does, and gives it back at once.
    constexpr int kAttempts = 100;
    const std::scoped_lock lock(spare_mutex_);
    for (int attempt = 0; no_descriptor && attempt < kAttempts; ++attempt) {
      spare_.reset();
      opened = open_file(file, key, no_descriptor);
      spare_ = spare_descriptor();
      if (no_descriptor) {
        std::this_thread::yield();
      }
    }
  }
  return opened;
}

OpenedBlob BlobFiles::open_file(const fs::path& file, const Key& key, bool& no_descriptor) const {
  using State = OpenedBlob::State;
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  no_descriptor = !fd && errno == EMFILE;
  if (!fd) {
    return errno == ENOENT || errno == ENOTDIR ? OpenedBlob{}
                                               : OpenedBlob{State::kUnreadable, nullptr, std::strerror(errno)};
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return {State::kUnreadable, nullptr, "is not a file"};
  }
  const auto length = static_cast<std::size_t>(status.st_size);
  if (length < kTensorAlignment) {
    return {State::kDamaged, nullptr, "is shorter than a header"};
  }
  // Without the lock (unsupported, or being evicted) eviction may remove the name, and we keep the file.
  try_lock_file(fd.get(), LOCK_SH);
  void* address = nullptr;
  if (MappedFile::mapped < most_mapped() && disk_.map(fd.get(), length, address) == 0) {
    return judge(std::make_shared<MappedFile>(address, length), key);
  }
  auto content = std::make_shared<ReadFile>(length);
  if (!content->read(fd.get())) {
    return {State::kUnreadable, nullptr, "cannot be read"};
  }
  return judge(std::move(content), key);
}

TemporaryBlob BlobFiles::make_temporary(const Key& key) {
  static std::atomic<std::uint64_t> count{0};
  for (;;) {
    const fs::path path =
        folder_ / "tmp" / fmt::format("{}-{}-{}", key.hex().substr(0, 16), ::getpid(), count.fetch_add(1));
    int fd = -1;
    if (const int failure = disk_.create(path, fd); failure == EEXIST) {
      continue;  // left by a process with the same pid
    } else if (failure != 0) {
      throw system_error(ErrorCode::kIo, path.string(), "cannot be created", failure);
    }
    UniqueFd file(fd);
    struct stat status {};
    const bool locked = try_lock_file(fd, LOCK_EX);
    // Between the two calls sweep() may have removed it as a leftover.
    if ((locked || errno != EWOULDBLOCK) && ::fstat(fd, &status) == 0 && status.st_nlink > 0) {
      return TemporaryBlob(disk_, path, std::move(file));
    }
  }
}

TemporaryBlob BlobFiles::write(const Key& key, EncodedBlob& blob) {
  TemporaryBlob temporary = make_temporary(key);
  static constexpr std::array<char, kTensorAlignment> kZeros{};
  std::vector<iovec> pieces = {{blob.head.data(), blob.head.size()}};
  for (const EncodedBlob::Piece& piece : blob.pieces) {
    pieces.push_back({const_cast<std::byte*>(piece.data.data()), piece.data.size()});  // writev only reads
    pieces.push_back({const_cast<char*>(kZeros.data()), piece.padding});
  }
  if (const int failure = disk_.write(temporary.fd(), pieces); failure != 0) {
    throw system_error(ErrorCode::kIo, temporary.path().string(), "cannot be written", failure);
  }
  return temporary;
}

int BlobFiles::publish(TemporaryBlob& temporary, const Key& key, std::set<fs::path>& changed) {
  const fs::path target = path(key);
  int failure = disk_.rename(temporary.path(), target);
  if (failure == ENOENT) {  // the first blob in its folder, perhaps in the cache
    if (::mkdir(target.parent_path().c_str(), 0777) != 0 && errno != EEXIST) {
      return errno;
    }
    for (const fs::path& made : {folder_ / "blobs", folder_, folder_.parent_path(), folder_.parent_path() / ".."}) {
      changed.insert(made);
    }
    failure = disk_.rename(temporary.path(), target);
  }
  if (failure == 0) {
    temporary.published();
    changed.insert(target.parent_path());
  }
  return failure;
}

bool BlobFiles::sync_includes_names() {
  std::call_once(asked_disk_, [&] { names_go_with_files_ = disk_.sync_includes_names(folder_); });
  return names_go_with_files_;
}

namespace {

/// Starts all writes before waiting for the first, so that the file system needs one journal entry. syncfs() would be a
/// single call, but waits for everyone's writes to this disk, and reports no errors before Linux 5.8.
void begin_sync(Disk& disk, std::span<TemporaryBlob* const> files) {
  for (std::size_t i = 0; i < files.size() && files.size() > 1; ++i) {
    disk.begin_sync(files[i]->fd());
  }
}

int first_failure(const std::vector<int>& failures) {
  const auto failed = std::find_if(failures.begin(), failures.end(), [](int failure) { return failure != 0; });
  return failed == failures.end() ? 0 : *failed;
}

}  // namespace

int BlobFiles::sync_content(std::span<TemporaryBlob* const> files) {
  begin_sync(disk_, files);
  std::vector<int> failures(files.size());
  wait_together(files.size(), [&](std::size_t i) { failures[i] = disk_.sync(files[i]->fd()); });
  return first_failure(failures);
}

int BlobFiles::sync_published(std::span<TemporaryBlob* const> files, std::span<TemporaryBlob* const> synced,
                              const std::set<fs::path>& folders) {
  begin_sync(disk_, files);
  if (sync_includes_names()) {
    std::vector<TemporaryBlob*> all(files.begin(), files.end());
    all.insert(all.end(), synced.begin(), synced.end());
    std::vector<int> failures(all.size());
    wait_together(all.size(), [&](std::size_t i) { failures[i] = disk_.sync_all(all[i]->fd()); });
    return first_failure(failures);
  }
  const auto close = [](TemporaryBlob* file) { file->close(); };  // syncing folders needs descriptors, too
  std::for_each(synced.begin(), synced.end(), close);
  const std::vector<fs::path> names(folders.begin(), folders.end());
  std::vector<int> failures(files.size() + names.size());
  wait_together(failures.size(), [&](std::size_t i) {
    failures[i] = i < files.size() ? disk_.sync(files[i]->fd()) : sync_folder(disk_, names[i - files.size()]);
  });
  for (std::size_t i = 0; i < names.size(); ++i) {
    int& failure = failures[files.size() + i];
    if (failure == EMFILE || failure == ENFILE) {
      std::for_each(files.begin(), files.end(), close);
      failure = sync_folder(disk_, names[i]);
    }
  }
  return first_failure(failures);
}

RemovalState BlobFiles::remove_unheld(const Key& key) {
  const fs::path file = path(key);
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) {
    return errno == ENOENT || errno == ENOTDIR ? RemovalState::kRemoved : RemovalState::kHeld;
  }
  const WholeFileLock lock(fd.get());
  if (lock.busy()) {
    return RemovalState::kHeld;
  }
  const int failure = disk_.unlink(file);
  return failure == 0 || failure == ENOENT ? RemovalState::kRemoved : RemovalState::kHeld;
}

bool BlobFiles::remove(const Key& key) { return disk_.unlink(path(key)) == 0; }

bool BlobFiles::set_aside(const Key& key) {
  const fs::path folder = folder_ / "damaged";
  if (disk_.rename(path(key), folder / key.hex()) != 0) {
    return false;
  }
  std::vector<std::pair<fs::file_time_type, fs::path>> kept;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    std::error_code gone;
    kept.emplace_back(entry->last_write_time(gone), entry->path());
  }
  std::sort(kept.begin(), kept.end());
  for (std::size_t i = 0; i + kDamagedKept < kept.size(); ++i) {
    disk_.unlink(kept[i].second);
  }
  return true;
}

std::size_t BlobFiles::remove_damaged() {
  std::size_t removed = 0;
  std::error_code failure;
  for (fs::directory_iterator entry(folder_ / "damaged", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    removed += disk_.unlink(entry->path()) == 0 ? 1 : 0;
  }
  return removed;
}

std::size_t BlobFiles::sweep() {
  std::size_t removed = 0;
  std::error_code failure;
  for (fs::directory_iterator entry(folder_ / "tmp", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const UniqueFd fd(::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd) {
      const WholeFileLock lock(fd.get());
      removed += lock.taken() && disk_.unlink(entry->path()) == 0 ? 1 : 0;
    }
  }
  return removed;
}

}  // namespace unidle::cache::detail
