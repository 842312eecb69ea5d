// How fast one run was, and what disturbed it.
#pragma once

#include <optional>

namespace unidle::experiment {

struct Measurement {
  double rate = 0;                    // samples/s
  std::optional<double> others_cpus;  // CPUs that other processes used meanwhile
};

/// Other processes used the CPUs meanwhile.
bool is_disturbed(const Measurement& run);

/// Both ran beside about as many busy CPUs of others: otherwise the rate of one says nothing about the other's.
bool comparable(const Measurement& a, const Measurement& b);

}  // namespace unidle::experiment
