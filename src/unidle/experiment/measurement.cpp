#include "unidle/experiment/measurement.h"

#include <cmath>

#include "unidle/diagnose/policy.h"

namespace unidle::experiment {

namespace {

/// A run counts as disturbed when other processes use more CPUs than this.
constexpr double kDisturbingCpus = diagnose::Policy{}.others_cpus;

}  // namespace

bool is_disturbed(const Measurement& run) { return run.others_cpus.value_or(0) > kDisturbingCpus; }

bool comparable(const Measurement& a, const Measurement& b) {
  return std::abs(a.others_cpus.value_or(0) - b.others_cpus.value_or(0)) <= kDisturbingCpus;
}

}  // namespace unidle::experiment
