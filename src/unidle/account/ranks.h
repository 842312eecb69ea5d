// Ranks: processes that train together and wait for each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unidle/account/run_data.h"

namespace unidle::account {

struct RankTime {
  int rank = 0;
  double step_s = 0;
  double wait_s = 0;  // part of step_s in collectives, at most all of it
  std::int64_t process = 0;
  std::string node = {};  // for a run on several nodes

  double work_s() const { return step_s - wait_s; }
};

/// The ranks that reported how long they wait for each other. Their step time is what they reported, else the median of
/// the process's steps; ranks without either are left out.
std::vector<RankTime> rank_times(const RunData& run);

}  // namespace unidle::account
