#include "unidle/cache/detail/key_locks.h"

#include <fcntl.h>

#include <cerrno>

#include "unidle/base/error.h"

namespace unidle::cache::detail {

namespace {

struct flock range(short type, off_t at) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = at;
  range.l_len = 1;
  return range;
}

UniqueFd open_lock_file(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd) {
    throw system_error(ErrorCode::kIo, path.string(), "cannot be opened", errno);
  }
  return fd;
}

}  // namespace

KeyLocks::KeyLocks(const std::filesystem::path& path) : fd_(open_lock_file(path)) {}

Outcome KeyLocks::lock(off_t at, bool wait, const std::function<bool()>& stop) {
  for (;;) {
    if (forked()) {
      return Outcome::kUnsupported;
    }
    struct flock wanted = range(F_WRLCK, at);
    if (::fcntl(fd_.get(), wait ? F_OFD_SETLKW : F_OFD_SETLK, &wanted) == 0) {
      return Outcome::kTaken;
    }
    if (errno == EAGAIN || errno == EACCES || (errno == EINTR && stop && stop())) {
      return Outcome::kBusy;
    }
    if (errno != EINTR) {
      return Outcome::kUnsupported;
    }
  }
}

void KeyLocks::unlock(off_t at) {
  if (forked()) {
    return;
  }
  struct flock given = range(F_UNLCK, at);
  ::fcntl(fd_.get(), F_OFD_SETLK, &given);
}

}  // namespace unidle::cache::detail
