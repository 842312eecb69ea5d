// libunidle_cupti.so: the CUDA driver loads the library that CUDA_INJECTION64_PATH names and calls its
// InitializeInjection(). No failure here may affect the program: it is noted, and the program runs on unobserved.
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include "unidle/probe/unidle_probe.h"
#include "unidle/trace/cupti/aggregate.h"
#include "unidle/trace/cupti/session.h"

namespace {

using unidle::trace::cupti::Aggregate;
using unidle::trace::cupti::DeviceSecond;
using unidle::trace::cupti::Session;

struct Injection {
  pid_t pid = ::getpid();
  unidle_probe* probe = nullptr;
  std::unique_ptr<Aggregate> aggregate;
  std::unique_ptr<Session> session;
};
/// Never destroyed: CUPTI's threads may outlive main().
Injection* injection = nullptr;

void note(const std::string& status, const std::string& reason) {
  const std::string line = R"({"type":"cupti","status":")" + status + R"(","reason":")" + reason + R"("})";
  unidle_probe_note(injection->probe, line.c_str());
}

/// Called by one thread at a time: the aggregate holds its lock.
void emit(const DeviceSecond& second) {
  unidle_event event{};
  event.kind = UNIDLE_EVENT_KERNELS;
  event.t_ns = static_cast<std::uint64_t>(second.begin_ns);
  event.duration_ns = static_cast<std::uint64_t>(second.busy_ns);
  event.a = second.kernels;
  event.b = second.copied_bytes;
  event.value = std::isnan(second.matrix_share) ? -1 : second.matrix_share;
  event.thread = second.device;
  unidle_probe_emit(injection->probe, &event);
}

/// Runs at the end of the process, while CUPTI is still usable.
void stop() {
  if (::getpid() != injection->pid) {
    return;  // a forked child owns none of this
  }
  injection->session.reset();
  injection->aggregate->finish();
  const std::uint64_t missed = Session::dropped() + injection->aggregate->late();
  note("ended", missed > 0 ? std::to_string(missed) + " records were lost" : "");
  unidle_probe_close(injection->probe);
}

void start() {
  injection = new Injection;
  injection->probe = unidle_probe_open("worker");
  if (injection->probe == nullptr) {
    return;  // not under `unidle run`
  }
  injection->aggregate = std::make_unique<Aggregate>(emit);
  const char* library = std::getenv("UNIDLE_CUPTI_LIBRARY");
  std::string why;
  injection->session = Session::start(library == nullptr ? "" : library, *injection->aggregate, why);
  if (!injection->session) {
    note("off", why);
    unidle_probe_close(injection->probe);
    return;
  }
  note("on", "");
  std::atexit(stop);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  try {
    if (injection == nullptr) {
      start();
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // out of memory; the program goes on unobserved
  }
  return 1;
}
