#include "unidle/tune/search/batch_trials.h"

#include <utility>

namespace unidle::tune {

namespace {

/// Factor of the gain that is worth a change.
constexpr double kFurther = 0.5;

}  // namespace

BatchSearch::Result BatchTrials::try_size(const BatchChoice& choice, double& ratio) {
  knobs::Settings changes = contest_.best().settings;
  // Choices name different knobs, so those of all others are removed.
  for (const BatchChoice& other : choices_) {
    for (const auto& [knob, value] : other.changes) {
      changes.erase(knob);
    }
  }
  changes = knobs::overlaid(std::move(changes), choice.changes);
  // Relative to another new size, a smaller gain suffices.
  const bool is_first = !contest_.best().settings.contains("batch.size");
  const auto verdict = contest_.challenge(changes, "batch", knobs::describe(choice.changes), is_first ? 1 : kFurther);
  ratio = verdict.ratio;
  switch (verdict.judgement) {
    case Judgement::kBetter: return BatchSearch::Result::kBetter;
    case Judgement::kNoGain: return ratio < 1 - log_.noise() ? BatchSearch::Result::kWorse : BatchSearch::Result::kFlat;
    case Judgement::kRejected:
    case Judgement::kStopped: break;
  }
  return BatchSearch::Result::kFailed;
}

/// A short trial may not contain the longest samples. True when they fit, when all samples are equally long, or when it
/// cannot be tested.
bool BatchTrials::fits_longest_samples() {
  const Best& best = contest_.best();
  if (!best.result.lengths_vary || log_.stopped()) {
    return true;
  }
  auto result = log_.measure_longest(best.settings, contest_.limit_s());
  if (!result) {
    return true;
  }
  LoggedTrial trial;
  trial.stage = "longest";
  trial.changes = best.settings;
  trial.result = std::move(*result);
  const bool ok = trial.result.ok;
  trial.verdict = ok ? "held" : "failed";
  trial.why = "the longest samples together";
  trial.why += "; " + (ok ? trial.result.longest : trial.result.problem);
  log_.add(std::move(trial));
  return ok;
}

std::optional<FoundBatch> BatchTrials::find(int trials, const std::function<bool()>& may_go_on) {
  struct Found {
    std::size_t at = 0;
    double gain = 1;
    Best best;
  };
  std::vector<long long> sizes;
  std::size_t start = 0;
  for (const BatchChoice& choice : choices_) {
    start = choice.changes.empty() ? sizes.size() : start;
    sizes.push_back(choice.size);
  }
  BatchSearch search(std::move(sizes), start, trials);
  std::vector<Found> found{{start, 1, contest_.best()}};
  for (auto next = search.next(); next && may_go_on(); next = search.next()) {
    double ratio = 1;
    const BatchSearch::Result result = try_size(choices_[*next], ratio);
    if (result == BatchSearch::Result::kBetter) {
      found.push_back({*next, found.back().gain * ratio, contest_.best()});
    }
    search.report(result);
  }
  while (found.back().at > start && !fits_longest_samples()) {
    found.pop_back();
    contest_.restore(found.back().best);
  }
  const Found& taken = found.back();
  return taken.at == start ? std::nullopt : std::optional(FoundBatch{choices_[taken.at], taken.gain});
}

}  // namespace unidle::tune
