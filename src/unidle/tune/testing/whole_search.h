// A whole search of a program whose speed is a product.
#pragma once

#include <map>
#include <stop_token>
#include <string>

#include "unidle/tune/search/tuner.h"
#include "unidle/tune/testing/fake_runner.h"

namespace unidle::tune::testing {

/// By knob and value.
using Factors = std::map<std::string, std::map<std::string, double>>;

/// Speed is a product of one factor a knob value; values without a factor change nothing.
TrialResult product(const knobs::Settings& changes, const Factors& factors);
/// The speed with the best value of each knob.
double best_of(const Factors& factors);

/// What the program of a WholeSearch has.
const knobs::Settings& naive_settings();

/// A search of that program on a small machine without a GPU.
struct WholeSearch {
  unidle::testing::FakeClock clock;
  TunerOptions options;
  std::stop_source stop;

  TunerOutcome tune(FakeRunner& runner);
};

/// Trials that count against those that a search may make.
int search_trials(const TunerOutcome& outcome);

}  // namespace unidle::tune::testing
