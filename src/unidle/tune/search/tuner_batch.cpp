// The part of the search that is about the batch: measured like everything else, with the loader in it.
#include <limits>
#include <utility>

#include "unidle/tune/search/tuner.h"

namespace unidle::tune {

namespace {

/// Of what is worth a change.
constexpr double kFurther = 0.5;
/// For the batch, of a search that has much else to try.
constexpr int kTrials = 6;

}  // namespace

bool Tuner::changes_effective_batch(const knobs::Settings& changes) const {
  const auto effective = [](const knobs::Settings& settings) {
    return knobs::integer_of(settings, "batch.size").value_or(1) *
           knobs::integer_of(settings, "batch.accumulation").value_or(1);
  };
  return effective(knobs::overlaid(settings_, changes)) != effective(settings_);
}

/// Of another effective batch, which somebody allowed, only that its loss is a number can be asked of a short trial.
Parity Tuner::parity_of(const std::vector<TrialResult>& baselines, const std::vector<TrialResult>& changed,
                        const knobs::Settings& changes) const {
  ParityBands bands = options_.bands;
  if (changes_effective_batch(changes)) {
    bands.exact_loss = bands.numeric_loss = bands.psnr_db = bands.metric = std::numeric_limits<double>::infinity();
  }
  const Spread chance = spread_of(repeats_).of_difference(baselines.size(), changed.size());
  return check_parity(averaged(baselines), averaged(changed), changes, bands, chance);
}

BatchSearch::Result Tuner::try_batch(const BatchChoice& choice, std::stop_token stop) {
  knobs::Settings changes = outcome_.best;
  // Choices differ in the knobs that they name.
  for (const BatchChoice& other : options_.batches) {
    for (const auto& [knob, value] : other.changes) {
      changes.erase(knob);
    }
  }
  changes = knobs::overlaid(std::move(changes), choice.changes);
  // Beside another new size it need not show as much once more.
  const bool is_first = !outcome_.best.contains("batch.size");
  switch (try_settings(changes, "batch", knobs::describe(choice.changes), is_first ? 1 : kFurther, stop)) {
    case Judgement::kBetter: return BatchSearch::Result::kBetter;
    case Judgement::kNoGain:
      return last_ratio_ < 1 - noise() ? BatchSearch::Result::kWorse : BatchSearch::Result::kFlat;
    case Judgement::kRejected:
    case Judgement::kStopped: break;
  }
  return BatchSearch::Result::kFailed;
}

/// A short trial may not meet the longest samples. True where it did, all are alike, or there is no way to tell.
bool Tuner::has_room_for_the_longest(std::stop_token stop) {
  if (!incumbent_.lengths_vary || stop.stop_requested()) {
    return true;
  }
  auto result = runner_.run_longest(outcome_.best, stop);
  if (!result || result->interrupted || stop.stop_requested()) {
    return true;
  }
  LoggedTrial trial;
  trial.index = static_cast<int>(outcome_.trials.size()) + 1;
  trial.stage = "longest";
  trial.changes = outcome_.best;
  trial.result = std::move(*result);
  const bool ok = trial.result.ok;
  trial.verdict = ok ? "held" : "failed";
  trial.why = "the longest samples together; " + (ok ? trial.result.longest : trial.result.problem);
  incumbent_is_newest_ = false;
  log(std::move(trial));
  return ok;
}

void Tuner::take_batch(std::stop_token stop) {
  struct Found {
    std::size_t at = 0;
    double gain = 1;
    knobs::Settings best;
    TrialResult incumbent;
  };
  std::vector<long long> sizes;
  std::size_t start = 0;
  for (const BatchChoice& choice : options_.batches) {
    start = choice.changes.empty() ? sizes.size() : start;
    sizes.push_back(choice.size);
  }
  // Asked for nothing but the batch, all trials are the batch's.
  BatchSearch search(std::move(sizes), start, options_.only.empty() ? kTrials : options_.trials);
  std::vector<Found> found{{start, 1, outcome_.best, incumbent_}};
  while (const auto next = search.next()) {
    if (!may_go_on(stop, removal_reserve())) {
      break;
    }
    const BatchSearch::Result result = try_batch(options_.batches[*next], stop);
    if (result == BatchSearch::Result::kBetter) {
      found.push_back({*next, found.back().gain * last_ratio_, outcome_.best, incumbent_});
    }
    search.report(result);
  }
  while (found.back().at > start && !has_room_for_the_longest(stop)) {
    found.pop_back();
    outcome_.best = found.back().best;
    incumbent_ = found.back().incumbent;
  }
  if (const Found& taken = found.back(); taken.at != start) {
    const BatchChoice& choice = options_.batches[taken.at];
    for (const auto& [knob, value] : choice.changes) {
      gains_[knob] = taken.gain;
    }
    candidates_.push_back({choice.changes, choice.reason, 1, false, true});  // the reason, for the answer
    add_suggestions(incumbent_);
  }
}

}  // namespace unidle::tune
