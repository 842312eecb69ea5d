#include "unidle/tune/testing/whole_search.h"

#include <algorithm>

#include "unidle/tune/advice/proposals.h"

namespace unidle::tune::testing {

namespace {

Hardware small_machine() {
  Hardware hardware;
  hardware.cpus = 4;
  hardware.cpu_bf16 = true;
  hardware.memory_bytes = 16ULL << 30;
  return hardware;
}

}  // namespace

TrialResult product(const knobs::Settings& changes, const Factors& factors) {
  double rate = 100;
  for (const auto& [knob, value] : changes) {
    const auto knob_factors = factors.find(knob);
    if (knob_factors != factors.end()) {
      const auto factor = knob_factors->second.find(value.to_text());
      rate *= factor == knob_factors->second.end() ? 1 : factor->second;
    }
  }
  return at_rate(rate);
}

double best_of(const Factors& factors) {
  double rate = 100;
  for (const auto& [knob, values] : factors) {
    double best = 1;
    for (const auto& [value, factor] : values) {
      best = std::max(best, factor);
    }
    rate *= best;
  }
  return rate;
}

const knobs::Settings& naive_settings() {
  static const knobs::Settings kSettings = {{"loader.workers", 0},         {"batch.size", 2},
                                            {"batch.accumulation", 8},     {"precision.amp", "off"},
                                            {"optimizer.fused", false},    {"layout.channels_last", false},
                                            {"metrics.interval", 1},       {"cache.features", "off"},
                                            {"loader.prefetch_factor", 2}, {"loader.persistent_workers", true}};
  return kSettings;
}

TunerOutcome WholeSearch::tune(FakeRunner& runner) {
  const knobs::Settings& settings = naive_settings();
  options.batches = batch_choices(settings, false);
  return Tuner(runner, clock, settings, propose(settings, traits::find_workload("superres"), small_machine(), {}),
               options)
      .run(stop.get_token());
}

int search_trials(const TunerOutcome& outcome) {
  return static_cast<int>(std::count_if(outcome.trials.begin(), outcome.trials.end(), [](const LoggedTrial& trial) {
    return !trial.stage.starts_with("verify") && trial.stage != "again" && trial.stage != "reference";
  }));
}

}  // namespace unidle::tune::testing
