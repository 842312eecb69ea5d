#include "unidle/probe/ring_reader.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "unidle/base/handle.h"
#include "unidle/base/json.h"
#include "unidle/probe/event_types.h"
#include "unidle/probe/ring.h"

namespace unidle::probe {

namespace {

constexpr std::uint64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
/// No valid note is longer; a faulty writer must not fill unidle's memory.
constexpr std::size_t kMaxNoteBytes = 1 << 20;

std::uint64_t file_bytes(int fd) {
  struct stat facts {};
  return ::fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) ? static_cast<std::uint64_t>(facts.st_size) : 0;
}

/// The error in a header; empty if there is none.
std::string header_problem(const RingHeader& header, std::uint64_t bytes) {
  if (header.magic != kRingMagic) {
    return "is not a ring";
  }
  if (header.version != kRingVersion || header.event_bytes != sizeof(Slot)) {
    return "has another version";
  }
  const std::uint64_t capacity = header.capacity;
  if (capacity == 0 || capacity > kMaxRingCapacity || (capacity & (capacity - 1)) != 0) {
    return "has a damaged header";
  }
  if (bytes < ring_file_bytes(capacity)) {
    return "has been cut short";
  }
  return {};
}

bool possible(const Slot& slot) {
  constexpr std::uint64_t kMaxTime = kMaxInteger / 4;
  const unidle_event& event = slot.event;
  if (!is_kind(event.kind) || event.t_ns > kMaxTime || event.duration_ns > kMaxTime || event.step > kMaxInteger ||
      event.a > kMaxInteger || event.b > kMaxInteger) {
    return false;
  }
  const unidle_step& step = slot.step;
  return event.kind != UNIDLE_EVENT_STEP ||
         std::max({step.input_ns, step.transfer_ns, step.forward_ns, step.backward_ns, step.optimizer_ns, step.sync_ns,
                   step.log_ns, step.flush_ns}) <= kMaxTime;
}

}  // namespace

int open_file(const char* path, int flags) { return ::open(path, flags); }

std::unique_ptr<RingReader> RingReader::open(const std::filesystem::path& path, std::string& problem,
                                             const OpenFile& opener) {
  problem.clear();
  UniqueFd fd(opener(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    problem = "cannot be opened";
    return nullptr;
  }
  const std::uint64_t bytes = file_bytes(fd.get());
  if (bytes < kHeaderBytes) {
    problem = "has been cut short";
    return nullptr;
  }
  RingHeader copy_of_header{};
  if (::pread(fd.get(), static_cast<void*>(&copy_of_header), sizeof copy_of_header, 0) != sizeof copy_of_header) {
    problem = "cannot be read";
    return nullptr;
  }
  problem = header_problem(copy_of_header, bytes);
  if (!problem.empty()) {
    return nullptr;
  }
  const std::uint64_t capacity = copy_of_header.capacity;
  void* memory = ::mmap(nullptr, ring_file_bytes(capacity), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    problem = "cannot be mapped";
    return nullptr;
  }
  return std::unique_ptr<RingReader>(new RingReader(fd.release(), static_cast<RingHeader*>(memory), capacity));
}

RingReader::RingReader(int fd, RingHeader* header, std::uint64_t capacity)
    : fd_(fd), header_(header), capacity_(capacity), position_(header->tail.load()), released_(position_) {
  // Pairs with the release store of the magic.
  std::atomic_ref<std::uint64_t>(header->magic).load(std::memory_order_acquire);
  pid_ = header->pid;
  process_start_ = std::min(header->process_start, kMaxInteger);
  started_ns_ = std::min(header->start_ns, kMaxInteger);
  role_.assign(header->role, ::strnlen(header->role, sizeof header->role));
}

RingReader::~RingReader() {
  ::munmap(header_, ring_file_bytes(capacity_));
  ::close(fd_);
}

void RingReader::skip_to(std::uint64_t position) {
  position_ = std::max(position_, std::min(position, header_->head.load(std::memory_order_acquire)));
}

void RingReader::drain(std::vector<Slot>& events) {
  // Checks the size each time: touching the mapping of a truncated file would raise SIGBUS.
  damaged_ = damaged_ || file_bytes(fd_) < ring_file_bytes(capacity_);
  if (damaged_) {
    return;
  }
  const std::uint64_t head = header_->head.load(std::memory_order_acquire);
  if (head - position_ > capacity_) {
    damaged_ = true;
    return;
  }
  const auto* slots = reinterpret_cast<const Slot*>(reinterpret_cast<const char*>(header_) + kHeaderBytes);
  for (; position_ != head; ++position_) {
    Slot slot;
    std::memcpy(&slot, &slots[position_ & (capacity_ - 1)], sizeof slot);
    if (possible(slot)) {
      events.push_back(slot);
    } else {
      ++refused_;
    }
  }
}

void RingReader::release() {
  if (!damaged_ && file_bytes(fd_) >= kHeaderBytes) {
    header_->tail.store(position_, std::memory_order_release);
    released_ = position_;
  }
}

std::uint64_t RingReader::dropped() const {
  return damaged_ || file_bytes(fd_) < kHeaderBytes ? 0 : header_->dropped.load(std::memory_order_relaxed);
}

bool RingReader::closed() const {
  if (damaged_ || file_bytes(fd_) < kHeaderBytes || header_->state.load(std::memory_order_acquire) == kRingClosed) {
    return true;
  }
  // Tests the lock rather than the pid, which may be of another namespace.
  if (header_->locked == kFileLock) {
    if (::flock(fd_, LOCK_SH | LOCK_NB) != 0) {
      return false;
    }
    ::flock(fd_, LOCK_UN);
    return true;
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return header_->locked == kRecordLock && ::fcntl(fd_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

void NotesReader::drain(const std::function<void(nlohmann::json)>& note) {
  const UniqueFd opened(removed_ ? -1 : opener_(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const UniqueFd& fd = removed_ ? removed_ : opened;
  std::array<char, 64 * 1024> buffer;
  for (ssize_t got = 1; fd && got > 0;) {
    got = ::pread(fd.get(), buffer.data(), buffer.size(), offset_);
    if (got > 0) {
      offset_ += got;
      rest_.append(buffer.data(), static_cast<std::size_t>(got));
      take_lines(note);
    }
  }
}

bool NotesReader::remove_read() {
  UniqueFd fd(opener_(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd || static_cast<std::int64_t>(file_bytes(fd.get())) != offset_ || ::unlink(path_.c_str()) != 0) {
    return false;
  }
  removed_ = std::move(fd);
  return true;
}

void NotesReader::take_lines(const std::function<void(nlohmann::json)>& note) {
  std::size_t begin = 0;
  for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    nlohmann::json body = parse_json(std::string_view(rest_).substr(begin, end - begin));
    if (body.is_object()) {
      note(std::move(body));
    } else {
      ++refused_;
    }
    begin = end + 1;
  }
  rest_.erase(0, begin);
  if (rest_.size() > kMaxNoteBytes) {
    rest_.clear();
    ++refused_;
  }
}

}  // namespace unidle::probe
