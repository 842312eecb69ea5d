// Ranks: processes that train side by side and wait for each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unidle/account/run_data.h"

namespace unidle::account {

struct RankTime {
  int rank = 0;
  double step_s = 0;
  double wait_s = 0;  // of it, in collectives
  std::int64_t process = 0;
  std::string node = {};  // of several
};

/// Those that told how long they wait for each other. The time of a step is what they told, else the median by the
/// process's own steps; ranks without either are left out.
std::vector<RankTime> rank_times(const RunData& run);

}  // namespace unidle::account
