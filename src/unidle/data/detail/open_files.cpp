#include "unidle/data/detail/open_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "unidle/base/error.h"
#include "unidle/data/detail/stages.h"

namespace unidle::data::detail {

std::size_t OpenFiles::add(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    throw system_error(ErrorCode::kInput, path, "cannot be examined", errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kInput, path, "is not a regular file");
  }
  files_.push_back({path,
                    static_cast<std::uint64_t>(status.st_size),
                    status.st_mtim,
                    {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino)},
                    nullptr});
  return files_.size() - 1;
}

std::shared_ptr<UniqueFd> OpenFiles::open(std::size_t number) {
  const std::lock_guard lock(mutex_);
  File& file = files_[number];
  if (file.fd) {
    return file.fd;
  }
  // Non-blocking: the file may have been replaced by a pipe.
  auto fd = std::make_shared<UniqueFd>(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!*fd) {
    throw system_error(ErrorCode::kInput, file.path, "cannot be opened", errno);
  }
  if (opened_.size() >= most_open_) {
    files_[opened_.front()].fd.reset();  // closed when its last reader is done
    opened_.pop_front();
  }
  opened_.push_back(number);
  file.fd = fd;
  return fd;
}

void OpenFiles::will_need(std::size_t number, std::uint64_t offset, std::uint64_t bytes) {
  const InStage stage(Stage::kRead);
  std::shared_ptr<UniqueFd> fd;
  try {
    fd = open(number);
  } catch (...) {
    return;  // reading it will report the error
  }
  ::posix_fadvise(fd->get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

void OpenFiles::require_unchanged(std::size_t number, int fd) const {
  const File& file = files_[number];
  struct stat now;
  const bool same = ::fstat(fd, &now) == 0 && static_cast<std::uint64_t>(now.st_dev) == file.identity[0] &&
                    static_cast<std::uint64_t>(now.st_ino) == file.identity[1] &&
                    static_cast<std::uint64_t>(now.st_size) == file.bytes &&
                    now.st_mtim.tv_sec == file.changed.tv_sec && now.st_mtim.tv_nsec == file.changed.tv_nsec;
  if (!same) {
    throw Error(ErrorCode::kInput, file.path, "was changed while it was read",
                "open the data again; replace a file by renaming a new one over it");
  }
}

void OpenFiles::read(std::size_t number, std::uint64_t offset, std::span<std::byte> to) {
  const InStage stage(Stage::kRead);
  const std::shared_ptr<UniqueFd> fd = open(number);
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got = ::pread(fd->get(), to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (got == 0) {
      throw Error(ErrorCode::kInput, path(number),
                  fmt::format("ends at byte {}; expected at least {}", offset + done, offset + to.size()),
                  "it became shorter while it was read");
    }
    if (got < 0 && errno != EINTR) {
      throw system_error(ErrorCode::kInput, path(number), "cannot be read", errno);
    }
    done += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  require_unchanged(number, fd->get());
}

}  // namespace unidle::data::detail
