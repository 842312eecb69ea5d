#include "engine/process.h"

#include <c10/util/Logging.h>
#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>

namespace unidle::engine {

namespace {

std::atomic<bool> g_stop{false};
std::atomic<int> g_signal{SIGINT};
std::atomic<std::int64_t> g_asked_at{0};  // 1 plus the CLOCK_MONOTONIC seconds of the first signal; 0: none

/// A second signal ends the process at once only if a person can have sent it: a signal to a whole group, as Slurm
/// sends, also reaches `unidle run`, which forwards it.
constexpr std::int64_t kSecondsOfOneSignal = 2;

/// May run on two threads at once, each with a signal.
void on_signal(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::int64_t first = 0;
  if (g_asked_at.compare_exchange_strong(first, now.tv_sec + 1, std::memory_order_relaxed)) {
    g_signal.store(signal, std::memory_order_relaxed);
    g_stop.store(true, std::memory_order_relaxed);
  } else if (now.tv_sec + 1 - first >= kSecondsOfOneSignal) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // glibc's maximum
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

// Parallel regions of a CPU step follow each other faster than a thread wakes up; when other programs use the CPUs, a
// spinning thread takes a core from the others. superres, tuned, on two cores of an Intel Xeon, relative to a count of
// 1000: this one gives 1.25 of the rate on idle CPUs and 0.86 beside a busy process, 10000 gives 1.32 and 0.73.
void let_waiting_threads_spin_briefly(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) {
    return;
  }
  std::error_code failure;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (!failure && ::setenv("GOMP_SPINCOUNT", "4000", 1) == 0) {
    ::execv(self.c_str(), argv);
  }
}

void quiet_torch(const char* level) {
  const bool asked = std::getenv("TORCH_CPP_LOG_LEVEL") != nullptr;
  ::setenv("TORCH_CPP_LOG_LEVEL", level, /*overwrite=*/0);
  c10::initLogging();
  if (!asked) {
    ::unsetenv("TORCH_CPP_LOG_LEVEL");  // not for predictors started by the run
  }
}

const std::atomic<bool>& stop_requested() { return g_stop; }

void stop_at_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

int stopping_signal() { return g_signal.load(std::memory_order_relaxed); }

}  // namespace unidle::engine
