#include "unidle/tune/search/repeats.h"

namespace unidle::tune {

namespace {

/// A standard deviation from three runs is usually right within a factor of two, and each run costs as much as a trial.
constexpr std::size_t kMostRepeats = 3;

std::vector<experiment::Learned> learned_in(const std::vector<TrialResult>& runs) {
  std::vector<experiment::Learned> learned;
  for (const TrialResult& run : runs) {
    learned.push_back(run.learned());
  }
  return learned;
}

}  // namespace

bool Repeats::add(const TrialResult& run) {
  const bool complete = runs_.empty() || (run.loss.has_value() == baseline().loss.has_value() &&
                                          run.metrics.size() == baseline().metrics.size());
  if (complete) {
    runs_.push_back(run);
  }
  return complete;
}

bool Repeats::are_enough() const {
  return runs_.size() >= kMostRepeats || (runs_.size() > 1 && experiment::agree(learned_in(runs_)));
}

experiment::Parity Repeats::parity_of(const TrialResult& changed, const knobs::Settings& changes) const {
  return parity_of(runs_, {changed}, changes);
}

experiment::Parity Repeats::parity_of(const std::vector<TrialResult>& baselines,
                                      const std::vector<TrialResult>& changed, const knobs::Settings& changes) const {
  const auto demand =
      changes_effective_batch(changes) ? experiment::Demand::kFinite : experiment::demand_of(changes.names());
  const experiment::Spread spread = experiment::spread_of(learned_in(runs_));
  return experiment::parity_of(learned_in(baselines), learned_in(changed), demand,
                               spread.of_difference(baselines.size(), changed.size()));
}

bool Repeats::changes_effective_batch(const knobs::Settings& changes) const {
  return knobs::effective_batch(knobs::overlaid(settings_, changes)) != knobs::effective_batch(settings_);
}

}  // namespace unidle::tune
