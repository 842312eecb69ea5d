// The speed of one run, and whether other processes disturbed it.
#pragma once

#include <optional>

namespace unidle::experiment {

struct Measurement {
  double rate = 0;                                // samples/s
  std::optional<double> others_cpus;              // CPUs used by other processes
  std::optional<double> own_cpus = std::nullopt;  // CPUs used by the run
};

/// True when other processes made the rate imprecise, by the rule of diagnose/policy.h.
bool is_disturbed(const Measurement& run);

/// True when other processes used about as many CPUs during both runs: when the difference alone would disturb neither.
/// Otherwise the rates cannot be compared.
bool comparable(const Measurement& a, const Measurement& b);

}  // namespace unidle::experiment
