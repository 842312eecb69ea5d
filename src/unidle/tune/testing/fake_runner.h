// A training program whose speed is a formula.
#pragma once

#include <functional>
#include <random>
#include <vector>

#include "unidle/base/testing/fake_clock.h"
#include "unidle/tune/trials/trial.h"

namespace unidle::tune::testing {

/// Answers each trial from `surface`, with multiplicative noise, and advances the fake clock.
class FakeRunner : public TrialRunner {
 public:
  using Surface = std::function<TrialResult(const knobs::Settings& changes)>;

  FakeRunner(unidle::testing::FakeClock& clock, Surface surface, double noise = 0, std::uint64_t seed = 1)
      : clock_(clock), surface_(std::move(surface)), noise_(noise), random_(seed) {}

  TrialResult run(const knobs::Settings& changes, double limit_s, std::stop_token stop) override;

  /// All requested settings, in order.
  std::vector<knobs::Settings> asked;
  /// Called before each trial, with its number from 1.
  std::function<void(int)> before;

 private:
  unidle::testing::FakeClock& clock_;
  Surface surface_;
  double noise_;
  std::mt19937_64 random_;
};

/// A successful result with that rate, after five seconds.
TrialResult at_rate(double rate);

}  // namespace unidle::tune::testing
