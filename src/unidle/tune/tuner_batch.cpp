// The part of the search that is about the batch: measured like everything else, with the loader in it.
#include <limits>

#include "unidle/tune/tuner.h"

namespace unidle::tune {

namespace {

/// Of the noise.
constexpr double kFurther = 0.5;
/// For the batch, of a search that has much else to try.
constexpr int kTrials = 6;

}  // namespace

bool Tuner::changes_effective_batch(const Settings& changes) const {
  const auto effective = [](const Settings& settings) {
    return integer_of(settings, "batch.size").value_or(1) * integer_of(settings, "batch.accumulation").value_or(1);
  };
  return effective(overlaid(settings_, changes)) != effective(settings_);
}

/// Of another effective batch, which somebody allowed, only that its loss is a number can be asked of a short trial.
Parity Tuner::parity_of(const TrialResult& baseline, const TrialResult& changed, const Settings& changes) const {
  ParityBands bands = options_.bands;
  if (changes_effective_batch(changes)) {
    bands.exact_loss = bands.numeric_loss = bands.psnr_db = bands.metric = std::numeric_limits<double>::infinity();
  }
  return check_parity(baseline, changed, changes, bands);
}

BatchSearch::Result Tuner::try_batch(const BatchChoice& choice, std::stop_token stop) {
  Settings changes = outcome_.best;
  // Choices differ in the knobs that they name.
  for (const BatchChoice& other : options_.batches) {
    for (const auto& [knob, value] : other.changes) {
      changes.erase(knob);
    }
  }
  changes = overlaid(std::move(changes), choice.changes);
  // Beside another new size it need not show a gain beyond the noise once more.
  const bool is_first = !outcome_.best.contains("batch.size");
  switch (try_settings(changes, "batch", describe(choice.changes), is_first ? 1 : kFurther, stop)) {
    case Judgement::kBetter: return BatchSearch::Result::kBetter;
    case Judgement::kNoGain:
      return last_ratio_ < 1 - noise() ? BatchSearch::Result::kWorse : BatchSearch::Result::kFlat;
    case Judgement::kRejected:
    case Judgement::kStopped: break;
  }
  return BatchSearch::Result::kFailed;
}

void Tuner::take_batch(std::stop_token stop) {
  std::vector<long long> sizes;
  std::size_t start = 0;
  for (const BatchChoice& choice : options_.batches) {
    start = choice.changes.empty() ? sizes.size() : start;
    sizes.push_back(choice.size);
  }
  // Asked for nothing but the batch, all trials are the batch's.
  BatchSearch search(std::move(sizes), start, options_.only.empty() ? kTrials : options_.trials);
  double gain = 1;
  while (const auto next = search.next()) {
    if (!may_go_on(stop, removal_reserve())) {
      break;
    }
    const BatchSearch::Result result = try_batch(options_.batches[*next], stop);
    gain *= result == BatchSearch::Result::kBetter ? last_ratio_ : 1;
    search.report(result);
  }
  if (search.best() != start) {
    const BatchChoice& found = options_.batches[search.best()];
    for (const auto& [knob, value] : found.changes) {
      gains_[knob] = gain;
    }
    candidates_.push_back({found.changes, found.reason, 1, false, true});  // the reason, for the answer
    add_suggestions(incumbent_);
  }
}

}  // namespace unidle::tune
