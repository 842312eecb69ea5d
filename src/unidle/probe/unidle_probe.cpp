// Compiled both into the module's library and, alone, into libunidle_probe.so: it may use the C library only.
#include "unidle/probe/unidle_probe.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "unidle/probe/ring.h"

#ifdef UNIDLE_PROBE_EXPORTS
#define UNIDLE_PROBE_API __attribute__((visibility("default")))
#else
#define UNIDLE_PROBE_API
#endif

using unidle::probe::RingHeader;
using unidle::probe::Slot;

struct unidle_probe {
  RingHeader* header;
  Slot* slots;
  std::uint64_t head;  // private copy: whatever happens to the file, we never write outside the mapping
  std::uint64_t generation;
  int file;  // kept open for its lock
  int notes;
};

namespace {

constexpr std::size_t kFileBytes = unidle::probe::ring_file_bytes(unidle::probe::kRingCapacity);
constexpr int kMaxRingsOfProcess = 256;

/// Number of forks between this process and the one that loaded the library. A ring belongs to one process, and
/// getpid() at every event would be a system call.
std::atomic<std::uint64_t> fork_generation{0};

void count_fork() { fork_generation.fetch_add(1, std::memory_order_relaxed); }

void watch_forks() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { pthread_atfork(nullptr, nullptr, count_fork); });
}

bool is_ours(const unidle_probe* probe) {
  return probe != nullptr && probe->generation == fork_generation.load(std::memory_order_relaxed);
}

/// The size limit of this process's files: exceeding it raises a signal that ends the user's program.
std::uint64_t file_size_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : 0;
}

/// Whether the notes file may grow by `more` bytes.
bool note_fits(int fd, std::size_t more) {
  struct stat facts {};
  return fstat(fd, &facts) == 0 && static_cast<std::uint64_t>(facts.st_size) + more <= file_size_limit();
}

/// Creates a file of this process: "PID.ring", or "PID.N.ring" when the process opens several or was replaced by exec.
int create_ring_file(const char* folder) {
  if (file_size_limit() < kFileBytes) {
    return -1;
  }
  char path[4096];
  for (int n = 0; n < kMaxRingsOfProcess; ++n) {
    const int length = n == 0 ? std::snprintf(path, sizeof path, "%s/%d.ring", folder, getpid())
                              : std::snprintf(path, sizeof path, "%s/%d.%d.ring", folder, getpid(), n);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) {
      return -1;
    }
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
      // Reserved now: on a full disk, a later write into the mapping would raise SIGBUS in the user's program.
      if (posix_fallocate(fd, 0, static_cast<off_t>(kFileBytes)) == 0) {
        return fd;
      }
      close(fd);
      unlink(path);
      return -1;
    }
    if (errno != EEXIST) {
      return -1;
    }
  }
  return -1;
}

RingHeader* map_ring(int fd) {
  void* memory = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<RingHeader*>(memory);
}

/// The lock tells the reader that events may still come: the kernel drops it when this process ends, however it ends,
/// and a forked child does not inherit it.
bool lock_while_alive(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return fcntl(fd, F_SETLK, &lock) == 0;
}

/// Start of this process in clock ticks since boot; identifies it together with the pid. 0 without /proc.
std::uint64_t process_start() {
  char text[1024];
  const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
  if (fd >= 0) {
    close(fd);
  }
  text[got > 0 ? got : 0] = '\0';
  const char* at = std::strrchr(text, ')');  // the name before it may contain any character
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  return at != nullptr ? std::strtoull(at, nullptr, 10) : 0;
}

void fill_header(RingHeader* header, int fd, const char* role) {
  header->locked = lock_while_alive(fd) ? unidle::probe::kRecordLock : 0;
  header->process_start = process_start();
  header->version = unidle::probe::kRingVersion;
  header->event_bytes = sizeof(Slot);
  header->capacity = unidle::probe::kRingCapacity;
  header->pid = static_cast<std::uint32_t>(getpid());
  header->start_ns = unidle_probe_now_ns();
  std::snprintf(header->role, sizeof header->role, "%s", role != nullptr ? role : "");
  header->state.store(unidle::probe::kRingOpen, std::memory_order_relaxed);
  // The magic comes last: a reader that sees it sees a whole header.
  std::atomic_ref<std::uint64_t>(header->magic).store(unidle::probe::kRingMagic, std::memory_order_release);
}

int open_notes(const char* folder) {
  char path[4096];
  const int length = std::snprintf(path, sizeof path, "%s/%d.%llu.notes.jsonl", folder, getpid(),
                                   static_cast<unsigned long long>(process_start()));
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) {
    return -1;
  }
  return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/// The slot of the next event. If the ring is full, counts a drop and returns null.
Slot* free_slot(unidle_probe* probe) {
  RingHeader* header = probe->header;
  if (probe->head - header->tail.load(std::memory_order_acquire) >= unidle::probe::kRingCapacity) {
    header->dropped.store(header->dropped.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return nullptr;
  }
  return &probe->slots[probe->head & (unidle::probe::kRingCapacity - 1)];
}

/// Makes the filled slot visible to the reader.
void publish(unidle_probe* probe) { probe->header->head.store(++probe->head, std::memory_order_release); }

/// The reader removes a notes file that it has read and that was quiet for a while. This opens a new file under the
/// same descriptor number, because other threads may be writing.
void renew_notes(int notes) {
  struct stat facts {};
  const char* folder = std::getenv("UNIDLE_PROBE_DIR");
  if (folder == nullptr || fstat(notes, &facts) != 0 || facts.st_nlink != 0) {
    return;
  }
  const int fd = open_notes(folder);
  if (fd >= 0) {
    dup3(fd, notes, O_CLOEXEC);
    close(fd);
  }
}

}  // namespace

extern "C" {

UNIDLE_PROBE_API unidle_probe* unidle_probe_open(const char* role) {
  const char* folder = std::getenv("UNIDLE_PROBE_DIR");
  if (folder == nullptr || *folder == '\0') {
    return nullptr;
  }
  const int saved_errno = errno;
  watch_forks();
  auto* probe = static_cast<unidle_probe*>(std::malloc(sizeof(unidle_probe)));
  const int fd = probe != nullptr ? create_ring_file(folder) : -1;
  RingHeader* header = fd >= 0 ? map_ring(fd) : nullptr;
  if (header == nullptr) {
    if (fd >= 0) {
      close(fd);
    }
    std::free(probe);
    errno = saved_errno;
    return nullptr;
  }
  fill_header(header, fd, role);
  auto* slots = reinterpret_cast<Slot*>(reinterpret_cast<char*>(header) + unidle::probe::kHeaderBytes);
  *probe = {header, slots, 0, fork_generation.load(std::memory_order_relaxed), fd, open_notes(folder)};
  errno = saved_errno;
  return probe;
}

UNIDLE_PROBE_API void unidle_probe_close(unidle_probe* probe) {
  if (probe == nullptr) {
    return;
  }
  if (is_ours(probe)) {
    probe->header->state.store(unidle::probe::kRingClosed, std::memory_order_release);
  }
  munmap(probe->header, kFileBytes);
  close(probe->file);
  if (probe->notes >= 0) {
    close(probe->notes);
  }
  std::free(probe);
}

UNIDLE_PROBE_API std::uint64_t unidle_probe_now_ns(void) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

UNIDLE_PROBE_API void unidle_probe_emit(unidle_probe* probe, const unidle_event* event) {
  if (!is_ours(probe) || event == nullptr) {
    return;
  }
  if (event->kind == UNIDLE_EVENT_STEP) {
    unidle_step step{};
    step.t_ns = event->t_ns;
    step.duration_ns = event->duration_ns;
    step.step = event->step;
    step.samples = event->a;
    step.micro_batches = static_cast<std::uint32_t>(event->b);
    unidle_probe_step(probe, &step);
  } else if (Slot* slot = free_slot(probe)) {
    slot->event = *event;
    publish(probe);
  }
}

UNIDLE_PROBE_API void unidle_probe_step(unidle_probe* probe, const unidle_step* step) {
  if (!is_ours(probe) || step == nullptr) {
    return;
  }
  if (Slot* slot = free_slot(probe)) {
    slot->step = *step;
    slot->step.kind = UNIDLE_EVENT_STEP;
    publish(probe);
  }
}

UNIDLE_PROBE_API void unidle_probe_note(unidle_probe* probe, const char* json) {
  if (!is_ours(probe) || json == nullptr || probe->notes < 0) {
    return;
  }
  while (*json == ' ' || *json == '\n' || *json == '\t' || *json == '\r') {
    ++json;
  }
  const std::size_t length = std::strlen(json);
  if (length < 2 || *json != '{') {
    return;
  }
  const int saved_errno = errno;
  auto* line = static_cast<char*>(std::malloc(length + 48));
  if (line != nullptr) {
    // The time comes first, so that a "t_ns" of the caller overrides it.
    const int start =
        std::snprintf(line, 48, "{\"t_ns\":%llu,", static_cast<unsigned long long>(unidle_probe_now_ns()));
    char* end = line + start;
    for (const char* from = json + 1; *from != '\0'; ++from) {
      *end++ = *from == '\n' || *from == '\r' ? ' ' : *from;
    }
    *end++ = '\n';
    const auto bytes = static_cast<std::size_t>(end - line);
    renew_notes(probe->notes);
    if (note_fits(probe->notes, bytes)) {
      // One write, so that lines of several threads do not mix. What a full disk refuses is lost.
      [[maybe_unused]] const ssize_t put = write(probe->notes, line, bytes);
    }
    std::free(line);
  }
  errno = saved_errno;
}

UNIDLE_PROBE_API std::uint64_t unidle_probe_dropped(const unidle_probe* probe) {
  return is_ours(probe) ? probe->header->dropped.load(std::memory_order_relaxed) : 0;
}

UNIDLE_PROBE_API void unidle_probe_store(std::uint64_t* word, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(*word).store(value, std::memory_order_release);
}

}  // extern "C"
