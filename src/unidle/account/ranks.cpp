#include "unidle/account/ranks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "unidle/base/stats.h"
#include "unidle/record/note_types.h"

namespace unidle::account {

namespace {

/// The median duration of a process's steps; 0 without steps.
double median_step_s(const RunData& run, std::int64_t process) {
  std::vector<double> durations;
  for (const record::Step& step : run.steps) {
    if (step.process == process) {
      durations.push_back(static_cast<double>(step.duration_ns) * 1e-9);
    }
  }
  return durations.empty() ? 0 : median(durations);
}

}  // namespace

std::vector<RankTime> rank_times(const RunData& run) {
  // Notes hold totals, so the last recorded note of each rank counts.
  std::map<std::pair<std::int64_t, std::int64_t>, RankTime> newest;
  record::each_note<record::NoteType::kRank>(run.notes, [&](const auto& note) {
    const auto rank = note.whole("rank");
    const auto wait_s = note.number("wait_seconds");
    if (rank && wait_s) {
      newest[{note.process(), *rank}] = {static_cast<int>(*rank), note.number("step_seconds").value_or(0), *wait_s,
                                         note.process()};
    }
  });
  std::vector<RankTime> ranks;
  for (auto& [key, rank] : newest) {
    rank.step_s = rank.step_s > 0 ? rank.step_s : median_step_s(run, rank.process);
    // Waits and steps are medians of different steps, so a rank that nearly only waits may seem to wait longer.
    rank.wait_s = std::clamp(rank.wait_s, 0.0, rank.step_s);
    if (rank.step_s > 0) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace unidle::account
