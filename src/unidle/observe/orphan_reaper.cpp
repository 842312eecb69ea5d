#include "unidle/observe/orphan_reaper.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "unidle/base/clock.h"
#include "unidle/telemetry/process_tree.h"

namespace unidle::observe {

namespace {

constexpr std::int64_t kWait_ns = 5 * kNsPerSecond;

std::set<std::int64_t> descendants() {
  const std::vector<std::int64_t> tree = telemetry::process_tree(::getpid(), "/");
  return {tree.begin(), tree.end()};
}

}  // namespace

OrphanReaper::OrphanReaper() : before_(descendants()) {
  before_.insert(::getpid());
  int adopts = 0;
  adopts_ = ::prctl(PR_GET_CHILD_SUBREAPER, &adopts) == 0 && adopts != 0;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

OrphanReaper::~OrphanReaper() {
  if (!adopts_) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
}

int OrphanReaper::end() const {
  std::set<std::int64_t> ended;
  const std::int64_t deadline = system_clock().now_ns() + kWait_ns;
  for (;;) {
    bool found = false;
    for (const std::int64_t pid : descendants()) {
      if (!before_.contains(pid)) {
        found = true;
        ended.insert(pid);
        ::kill(static_cast<pid_t>(pid), SIGKILL);
        ::waitpid(static_cast<pid_t>(pid), nullptr, WNOHANG);  // reaps the adopted ones
      }
    }
    if (!found || system_clock().now_ns() > deadline) {
      return static_cast<int>(ended.size());
    }
    ::usleep(2'000);
  }
}

}  // namespace unidle::observe
