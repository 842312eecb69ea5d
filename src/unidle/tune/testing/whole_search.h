// A complete search on a program whose speed is a product.
#pragma once

#include <map>
#include <stop_token>
#include <string>

#include "unidle/tune/search/tuner.h"
#include "unidle/tune/testing/fake_runner.h"

namespace unidle::tune::testing {

/// By knob and value.
using Factors = std::map<std::string, std::map<std::string, double>>;

/// The speed is the product of one factor per knob value; values without a factor change nothing.
TrialResult product(const knobs::Settings& changes, const Factors& factors);
/// The speed with the best value of each knob.
double best_of(const Factors& factors);

/// The settings of a WholeSearch's program.
const knobs::Settings& naive_settings();

/// A search of that program on a small machine without a GPU.
struct WholeSearch {
  unidle::testing::FakeClock clock;
  TunerOptions options;
  std::stop_source stop;

  TunerOutcome tune(FakeRunner& runner);
};

/// Number of trials that count against the search's limit.
int search_trials(const TunerOutcome& outcome);

}  // namespace unidle::tune::testing
