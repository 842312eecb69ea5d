#include "unidle/tune/testing/fake_runner.h"

namespace unidle::tune::testing {

TrialResult FakeRunner::run(const knobs::Settings& changes, double limit_s, std::stop_token stop) {
  asked.push_back(changes);
  if (before) {
    before(static_cast<int>(asked.size()));
  }
  TrialResult result = surface_(changes);
  if (result.seconds > limit_s) {
    result.seconds = limit_s;
    result.ok = false;
    result.problem = "took longer than its limit";
  }
  clock_.advance(static_cast<std::int64_t>(result.seconds * static_cast<double>(kNsPerSecond)));
  if (noise_ > 0) {
    result.rate *= std::normal_distribution<double>(1, noise_)(random_);
  }
  result.interrupted = stop.stop_requested();
  return result;
}

TrialResult at_rate(double rate) {
  TrialResult result;
  result.ok = true;
  result.rate = rate;
  result.seconds = 5;
  result.loss = 1.0;
  return result;
}

}  // namespace unidle::tune::testing
