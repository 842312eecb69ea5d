// Ranks: processes that train together and wait for each other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "unidle/account/run_data.h"
#include "unidle/account/steps.h"

namespace unidle::account {

struct RankTime {
  int rank = 0;
  double step_s = 0;                  // the mean step, with its wait for input
  std::optional<double> wait_s = {};  // part of step_s in which it waits for gradients of others; absent: not measured
  std::int64_t process = 0;
  std::string node = {};                      // for a run on several nodes
  std::optional<double> exchange_s = {};      // that exchange adds to a step: the wait, and what it takes from compute
  std::map<std::int64_t, double> waits = {};  // seconds per step, by exchange; an exchange has one number in all ranks
  std::optional<Parts> parts = {};            // of step_s; its compute includes the wait
  std::optional<double> by_hand_s = {};  // part of step_s in calls of torch.distributed between those of the model, by
                                         // stack samples; absent where wait_s is there
  double error_s = 0;                    // standard error of by_hand_s

  double work_s() const { return step_s - wait_s.value_or(0); }
};

/// The ranks of a run with several, in order. Their step time is the mean of the process's counted steps, else what
/// they reported; ranks without either are left out.
std::vector<RankTime> rank_times(const RunData& run);

/// The ranks with a known wait for gradients of others. Where a rank exchanges by hand, its wait_s is by_hand_s, which
/// moves from kOther to kCompute.
std::vector<RankTime> ranks_that_wait(const std::vector<RankTime>& ranks);

/// How ranks come to their exchanges, from those that all of them timed. Seconds per step, medians.
struct Arrivals {
  std::size_t compared = 0;  // exchanges
  double exchange_s = 0;     // the least wait of any rank: nobody is late there, so that it is the exchange itself
  std::size_t last = 0;      // index of the rank that mostly comes last
  double last_share = 0;     // share of the exchanges to which it does
  double late_s = 0;         // what the middle rank of the others waits for it; below zero: it waits longer itself
  double others_wait_s = 0;  // what a rank waits on average for whichever comes last
};

/// Nothing when fewer than two ranks timed at least five common exchanges.
std::optional<Arrivals> arrivals(const std::vector<RankTime>& ranks);

}  // namespace unidle::account
