#include "unidle/base/testing/fake_clock.h"

namespace unidle::testing {

bool FakeClock::sleep_until(std::int64_t deadline_ns, std::stop_token stop) {
  if (stop.stop_requested()) {
    return false;
  }
  std::int64_t now = now_ns_;
  while (now < deadline_ns && !now_ns_.compare_exchange_weak(now, deadline_ns)) {
  }
  return true;
}

}  // namespace unidle::testing
