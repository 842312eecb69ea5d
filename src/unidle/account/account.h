// The figures of a record, computed in one place: diagnose, compare, report, runs, monitor, optimize and slurm read
// them and compute none of them themselves.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "unidle/account/losses.h"
#include "unidle/account/machine.h"
#include "unidle/account/phases.h"
#include "unidle/account/ranks.h"
#include "unidle/account/rate.h"
#include "unidle/account/run_data.h"
#include "unidle/account/steps.h"
#include "unidle/account/timeline.h"

namespace unidle::account {

struct Account {
  Timeline timeline;
  std::vector<Period> periods;  // one per step of the timeline
  std::optional<StepMeans> step;
  PhaseTimes phases;
  Rates rates;
  CpuUse cpus;
  CpusAllowed cpus_allowed;
  std::optional<double> cpu_utilisation;
  std::optional<OwnGpu> gpu;  // the GPU that the run trains on
  std::optional<double> gpu_utilisation;
  std::vector<RankTime> ranks;
  LossCurve losses;
};

/// Pure: the same data give the same account.
Account account_of(const RunData& run);

/// Rates::training and Rates::total with their intervals. Compare two runs with different seeds: with equal ones their
/// draws would be correlated and hide the noise.
Throughput throughput(const Account& account, std::uint64_t seed = 1);

}  // namespace unidle::account
