#include "unidle/observe/tail.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "unidle/base/error.h"

namespace unidle::observe {

// Twice the limit, so that what is being read is seldom overwritten.
SharedTail::SharedTail(std::size_t limit) : limit_(limit), capacity_(2 * limit) {
  void* memory = ::mmap(nullptr, sizeof(Memory) + capacity_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw system_error(ErrorCode::kIo, "shared memory", "cannot be had", errno);
  }
  memory_ = new (memory) Memory{};
}

SharedTail::~SharedTail() { ::munmap(memory_, sizeof(Memory) + capacity_); }

void SharedTail::append(const char* bytes, std::size_t count) {
  const std::uint64_t total = memory_->total.load(std::memory_order_relaxed);
  // An exchange instead of a store and a fence, which the thread sanitizer does not support: no byte is written before
  // it.
  memory_->begun.exchange(total + count, std::memory_order_acq_rel);
  const std::size_t skipped = count > capacity_ ? count - capacity_ : 0;
  for (std::size_t done = skipped; done < count;) {
    const std::size_t at = (total + done) % capacity_;
    const std::size_t piece = std::min(count - done, capacity_ - at);
    std::memcpy(memory_->bytes + at, bytes + done, piece);
    done += piece;
  }
  memory_->total.store(total + count, std::memory_order_release);
}

std::string SharedTail::text() const {
  const std::uint64_t end = memory_->total.load(std::memory_order_acquire);
  const std::uint64_t begin = end - std::min<std::uint64_t>(end, limit_);
  std::string text(end - begin, '\0');
  for (std::uint64_t at = begin; at < end;) {
    const std::size_t piece = std::min<std::size_t>(end - at, capacity_ - at % capacity_);
    std::memcpy(text.data() + (at - begin), memory_->bytes + at % capacity_, piece);
    at += piece;
  }
  // Drops what was overwritten while reading. fetch_add(0): no byte is read after it.
  const std::uint64_t begun = memory_->begun.fetch_add(0, std::memory_order_acq_rel);
  const std::uint64_t oldest = begun - std::min<std::uint64_t>(begun, capacity_);
  text.erase(0, oldest > begin ? std::min(oldest, end) - begin : 0);
  return text;
}

std::uint64_t SharedTail::total() const { return memory_->total.load(std::memory_order_acquire); }

std::unique_ptr<FileTail> FileTail::open(int stream, std::size_t limit) {
  const std::string path = fmt::format("/proc/self/fd/{}", stream);
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOATIME));
  if (!file) {
    file.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));  // opened again: the file belongs to the user
  }
  return file ? std::unique_ptr<FileTail>(new FileTail(std::move(file), stream, limit)) : nullptr;
}

FileTail::FileTail(UniqueFd file, int stream, std::size_t limit)
    : file_(std::move(file)), stream_(stream), limit_(limit) {
  const bool appends = (::fcntl(stream, F_GETFL) & O_APPEND) != 0;
  struct stat status {};
  ::fstat(file_.get(), &status);
  const off_t position = appends ? status.st_size : ::lseek(stream, 0, SEEK_CUR);
  start_ = static_cast<std::uint64_t>(std::max<off_t>(position, 0));
  at_end_ = position >= status.st_size;
}

/// The command shares the stream's position with us: in a file, it shows how far the command has written.
std::uint64_t FileTail::end() const {
  struct stat status {};
  ::fstat(file_.get(), &status);
  const off_t size = status.st_size;
  const off_t end = at_end_ ? size : std::min(size, ::lseek(stream_, 0, SEEK_CUR));
  return static_cast<std::uint64_t>(std::max<off_t>(end, 0));
}

std::string FileTail::text() const {
  const std::uint64_t last = end();
  const std::uint64_t first = start_ < last ? start_ : 0;  // before the start: the file was truncated
  const std::uint64_t size = start_ == last ? 0 : std::min<std::uint64_t>(last - first, limit_);
  std::string text(size, '\0');
  const ssize_t got = ::pread(file_.get(), text.data(), size, static_cast<off_t>(last - size));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

std::uint64_t FileTail::total() const {
  const std::uint64_t last = end();
  return last >= start_ ? last - start_ : last;
}

}  // namespace unidle::observe
