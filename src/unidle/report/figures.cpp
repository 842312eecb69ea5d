#include "unidle/report/figures.h"

#include <array>

#include "unidle/base/units.h"

namespace unidle::report {

std::span<const Figure> figures() {
  static constexpr auto kJoules = [](double value) { return format_number(value) + " J"; };
  static constexpr std::array kFigures = {
      Figure{"gpu_busy", "GPU busy", &Summary::gpu_busy, format_share},
      Figure{"cpu_busy", "CPUs busy", &Summary::cpu_busy, format_share},
      Figure{"own_cpus", "", &Summary::own_cpus, format_number},
      Figure{"others_cpus", "CPUs used by others", &Summary::others_cpus, format_number, false, true},
      Figure{"energy_per_sample_j", "energy a sample", &Summary::energy_per_sample_j, kJoules, true},
  };
  return kFigures;
}

}  // namespace unidle::report
