// The speed of one run, and whether other processes disturbed it.
#pragma once

#include <optional>

namespace unidle::experiment {

struct Measurement {
  double rate = 0;                    // samples/s
  std::optional<double> others_cpus;  // CPUs used by other processes
};

/// True when other processes used the CPUs during the run.
bool is_disturbed(const Measurement& run);

/// True when other processes used about as many CPUs during both runs: otherwise the rates cannot be compared.
bool comparable(const Measurement& a, const Measurement& b);

}  // namespace unidle::experiment
