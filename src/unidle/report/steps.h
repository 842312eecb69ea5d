// Where the time of a run went: the parts of its steps, and the phases around them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "unidle/report/run.h"

namespace unidle::report {

/// The parts of a step, in the order in which they are shown. Indices into Parts.
enum Part : std::size_t { kInput, kTransfer, kCompute, kSync, kOptimizer, kOther, kPartCount };
constexpr std::array<std::string_view, kPartCount> kPartNames = {"input", "transfer",  "compute",
                                                                 "sync",  "optimizer", "other"};
using Parts = std::array<double, kPartCount>;  // seconds

/// A step with all that follows it up to the next one, without the spans (validation, checkpoint) in between.
struct Cycle {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  double wall_s = 0;   // end - begin - spans
  double samples = 0;  // of all ranks
  Parts parts{};       // sums to wall_s
};

/// One cycle a step, in time order.
std::vector<Cycle> cycles(const RunData& run);

/// How many first steps to leave out, as the diagnosis does: 5 %, at least 3, at most 20, and never more than half.
std::size_t warm_up_steps(std::size_t steps);

/// Seconds of wall time by phase; sums to the wall time of the run.
struct Phases {
  double startup = 0;
  double train = 0;
  double validate = 0;
  double checkpoint = 0;
  double other = 0;
};

/// Without a start-up span, start-up is what lies before the first step.
Phases phases(const RunData& run, const std::vector<Cycle>& cycles);

/// Which parts any step of the run reported; "other" always is.
std::array<bool, kPartCount> parts_seen(const RunData& run);

/// Mean of a series between two times, over subjects. Nothing without points there.
std::optional<double> series_mean(const RunData& run, std::string_view name, std::int64_t from_ns, std::int64_t to_ns);

}  // namespace unidle::report
