#include "unidle/tune/search/repeats.h"

#include <limits>
#include <utility>

namespace unidle::tune {

namespace {

/// The deviation of three is within a factor of two mostly, and each costs as much as a trial.
constexpr std::size_t kMostRepeats = 3;

}  // namespace

Repeats::Repeats(knobs::Settings settings, ParityBands bands) : settings_(std::move(settings)), bands_(bands) {}

bool Repeats::add(const TrialResult& run) {
  const bool complete = runs_.empty() || (run.loss.has_value() == baseline().loss.has_value() &&
                                          run.metrics.size() == baseline().metrics.size());
  if (complete) {
    runs_.push_back(run);
  }
  return complete;
}

bool Repeats::are_enough() const { return runs_.size() >= kMostRepeats || (runs_.size() > 1 && agree(runs_)); }

Parity Repeats::parity_of(const TrialResult& changed, const knobs::Settings& changes) const {
  return parity_of(runs_, {changed}, changes);
}

Parity Repeats::parity_of(const std::vector<TrialResult>& baselines, const std::vector<TrialResult>& changed,
                          const knobs::Settings& changes) const {
  ParityBands bands = bands_;
  if (changes_effective_batch(changes)) {
    bands.exact_loss = bands.numeric_loss = bands.psnr_db = bands.metric = std::numeric_limits<double>::infinity();
  }
  const Spread chance = spread_of(runs_).of_difference(baselines.size(), changed.size());
  return check_parity(averaged(baselines), averaged(changed), changes, bands, chance);
}

bool Repeats::changes_effective_batch(const knobs::Settings& changes) const {
  return knobs::effective_batch(knobs::overlaid(settings_, changes)) != knobs::effective_batch(settings_);
}

}  // namespace unidle::tune
