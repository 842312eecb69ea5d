#include "unidle/experiment/measurement.h"

#include <algorithm>
#include <cmath>

#include "unidle/diagnose/policy.h"

namespace unidle::experiment {

bool is_disturbed(const Measurement& run) {
  return diagnose::others_disturb(run.others_cpus.value_or(0), run.own_cpus.value_or(0));
}

bool comparable(const Measurement& a, const Measurement& b) {
  return !diagnose::others_disturb(std::abs(a.others_cpus.value_or(0) - b.others_cpus.value_or(0)),
                                   std::min(a.own_cpus.value_or(0), b.own_cpus.value_or(0)));
}

}  // namespace unidle::experiment
