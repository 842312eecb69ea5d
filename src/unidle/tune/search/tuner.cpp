#include "unidle/tune/search/tuner.h"

#include <algorithm>

#include "unidle/base/error.h"

namespace unidle::tune {

namespace {

/// A diagnosis may see new causes once the first ones are gone; more rounds than this have not been needed.
constexpr int kBundleRounds = 3;
/// What the diagnosis measured goes before what is only known from the hardware.
constexpr double kMeasuredFirst = 1.0;
/// Trials kept back for taking knobs back.
constexpr int kRemovalReserve = 5;
/// When one value of a knob gave nothing, its other values are that much less promising.
constexpr double kAlternativeDecay = 0.7;

/// Knobs that mean something only together.
const std::vector<std::vector<std::string>>& tied_knobs() {
  static const std::vector<std::vector<std::string>> kTied = {{"batch.size", "batch.accumulation", "optimizer.lr"},
                                                              {"loader.pin_memory", "transfer.non_blocking"}};
  return kTied;
}

bool shares_knob(const knobs::Settings& a, const knobs::Settings& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& change) { return b.contains(change.first); });
}

knobs::Settings without(knobs::Settings settings, std::span<const std::vector<std::string>> units) {
  for (const auto& unit : units) {
    for (const std::string& knob : unit) {
      settings.erase(knob);
    }
  }
  return settings;
}

}  // namespace

Tuner::Tuner(TrialRunner& runner, Clock& clock, knobs::Settings settings, std::vector<Proposal> proposals,
             TunerOptions options, OnTrial on_trial)
    : runner_(runner),
      clock_(clock),
      settings_(std::move(settings)),
      options_(std::move(options)),
      on_trial_(std::move(on_trial)) {
  if (!options_.only.empty() && !is_asked_for("batch.size")) {
    options_.batches.clear();
  }
  for (const Proposal& proposal : proposals) {
    if (is_left_to_the_batch_search(proposal.changes)) {
      continue;
    }
    add_candidate({proposal.changes, proposal.reason, proposal.promise, proposal.safe, false});
  }
}

TunerOutcome Tuner::run(std::stop_token stop) {
  start_ns_ = clock_.now_ns();
  LoggedTrial baseline = measure({}, "baseline", stop);
  if (!baseline.result.interrupted) {
    if (!baseline.result.ok) {
      throw Error(ErrorCode::kChild, "baseline trial", baseline.result.problem,
                  "the " + options_.subject + " must run as it is");
    }
    baseline.verdict = "baseline";
    baseline_ = incumbent_ = baseline.result;
    repeats_ = {baseline_};
    incumbent_is_newest_ = true;
    log(baseline);
    add_suggestions(baseline_);
    take_bundles(stop);
    take_batch(stop);
    take_steps(stop);
    take_removals(stop);
    drop_dead_letters();
  }
  conclude(stop);
  return std::move(outcome_);
}

// ---- candidates -----------------------------------------------------------------------------------------------------

bool Tuner::is_asked_for(const std::string& knob) const {
  if (options_.only.empty() || options_.only.contains(knob)) {
    return true;
  }
  return std::any_of(tied_knobs().begin(), tied_knobs().end(), [&](const auto& tied) {
    return std::find(tied.begin(), tied.end(), knob) != tied.end() &&
           std::any_of(tied.begin(), tied.end(), [&](const auto& other) { return options_.only.contains(other); });
  });
}

void Tuner::add_candidate(Candidate candidate) {
  std::erase_if(candidate.changes, [&](const auto& change) { return !is_asked_for(change.first); });
  if (candidate.changes.empty()) {
    return;
  }
  const auto same = [&](const Candidate& other) { return other.changes == candidate.changes; };
  const auto known = std::find_if(candidates_.begin(), candidates_.end(), same);
  if (known == candidates_.end()) {
    candidates_.push_back(std::move(candidate));
  } else if (candidate.promise > known->promise) {
    known->promise = candidate.promise;
    known->reason = candidate.reason;
    known->first = known->first || candidate.first;
  }
}

void Tuner::add_suggestions(const TrialResult& result) {
  for (const Suggestion& suggestion : result.suggestions) {
    if (!suggestion.changes.empty() && !is_left_to_the_batch_search(suggestion.changes)) {
      add_candidate({suggestion.changes, suggestion.finding + ": " + suggestion.how, kMeasuredFirst + suggestion.share,
                     true, false});
    }
  }
}

/// Where the batch has a search of its own, other candidates for it would be tried twice.
bool Tuner::is_left_to_the_batch_search(const knobs::Settings& changes) const {
  return !options_.batches.empty() && (changes.contains("batch.size") || changes.contains("batch.accumulation"));
}

bool Tuner::is_new(const Candidate& candidate) const {
  const knobs::Settings now = knobs::overlaid(settings_, outcome_.best);
  bool differs = false;
  for (const auto& [knob, value] : candidate.changes) {
    if (refused_.contains(knobs::pair_key(knob, value))) {
      return false;
    }
    differs = differs || knobs::value_of(now, knob) != value;
  }
  return differs && !candidate.tried;
}

knobs::Settings Tuner::bundle(bool exact_only) const {
  std::vector<const Candidate*> ordered;
  for (const Candidate& candidate : candidates_) {
    if (candidate.first && is_new(candidate) && (!exact_only || knobs::is_exact(candidate.changes))) {
      ordered.push_back(&candidate);
    }
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Candidate* a, const Candidate* b) { return a->promise > b->promise; });
  knobs::Settings changes;
  for (const Candidate* candidate : ordered) {
    const bool taken = std::any_of(candidate->changes.begin(), candidate->changes.end(),
                                   [&](const auto& change) { return changes.contains(change.first); });
    if (!taken) {
      changes = knobs::overlaid(std::move(changes), candidate->changes);
    }
  }
  return changes;
}

void Tuner::mark_tried(const knobs::Settings& changes) {
  for (Candidate& candidate : candidates_) {
    candidate.tried =
        candidate.tried || std::all_of(candidate.changes.begin(), candidate.changes.end(), [&](const auto& change) {
          const auto found = changes.find(change.first);
          return found != changes.end() && found->second == change.second;
        });
  }
}

// ---- the search -----------------------------------------------------------------------------------------------------

void Tuner::take_bundles(std::stop_token stop) {
  for (int round = 0; round < kBundleRounds && may_go_on(stop, 0); ++round) {
    const knobs::Settings all = bundle(false);
    if (all.empty()) {
      return;
    }
    const knobs::Settings best_before = outcome_.best;
    Judgement judgement = try_settings(knobs::overlaid(outcome_.best, all), "diagnosis", knobs::describe(all), 1, stop);
    if (judgement == Judgement::kBetter) {
      mark_tried(all);
      add_suggestions(incumbent_);
      if (all.size() == 1 && !best_before.contains(all.begin()->first)) {
        gains_[all.begin()->first] = last_ratio_;
      }
      continue;
    }
    if (judgement == Judgement::kNoGain && last_ratio_ > 1 - noise()) {
      mark_tried(all);  // neither gain nor loss: that its parts cancel out exactly is not worth many trials
      return;
    }
    // Something in the bundle hurts: what leaves the arithmetic alone is the likelier to be good; the rest is tried
    // one by one.
    const knobs::Settings exact = bundle(true);
    if (all.size() > 1 && !exact.empty() && exact != all && may_go_on(stop, 0)) {
      judgement = try_settings(knobs::overlaid(outcome_.best, exact), "diagnosis", knobs::describe(exact), 1, stop);
      if (judgement == Judgement::kBetter) {
        mark_tried(exact);
      }
    } else if (all.size() == 1) {
      mark_tried(all);
    }
    return;
  }
}

Tuner::Candidate* Tuner::next_step() {
  Candidate* best = nullptr;
  for (Candidate& candidate : candidates_) {
    if (is_new(candidate) && (best == nullptr || candidate.promise > best->promise)) {
      best = &candidate;
    }
  }
  return best;
}

void Tuner::take_steps(std::stop_token stop) {
  int without_gain = 0;
  while (without_gain < options_.plateau) {
    Candidate* candidate = next_step();
    if (candidate == nullptr || !may_go_on(stop, removal_reserve())) {
      return;
    }
    candidate->tried = true;
    const knobs::Settings changes = candidate->changes;
    const knobs::Settings best_before = outcome_.best;
    const Judgement judgement =
        try_settings(knobs::overlaid(outcome_.best, changes), "step", knobs::describe(changes), 1, stop);
    if (judgement != Judgement::kBetter) {
      ++without_gain;
      for (Candidate& other : candidates_) {
        other.promise *= !other.tried && shares_knob(other.changes, changes) ? kAlternativeDecay : 1;
      }
      continue;
    }
    without_gain = 0;
    for (const auto& [knob, value] : changes) {
      // Better than another new value is not yet better than the old one.
      if (!best_before.contains(knob)) {
        gains_[knob] = last_ratio_;
      }
    }
    add_suggestions(incumbent_);
  }
}

/// Trials that taking back what the bundles brought will need.
int Tuner::removal_reserve() const {
  const std::size_t open = unconfirmed().size();
  return open < 2 ? 0 : std::min(kRemovalReserve, 1 + static_cast<int>(open - open / 2));
}

std::vector<Tuner::Unit> Tuner::unconfirmed() const {
  std::vector<Unit> units;
  std::set<std::string> done;
  for (const auto& [knob, value] : outcome_.best) {
    if (gains_.contains(knob) || done.contains(knob)) {
      continue;
    }
    Unit unit{knob};
    for (const auto& tied : tied_knobs()) {
      if (std::find(tied.begin(), tied.end(), knob) != tied.end()) {
        unit.clear();
        std::copy_if(tied.begin(), tied.end(), std::back_inserter(unit),
                     [&](const std::string& other) { return outcome_.best.contains(other); });
      }
    }
    done.insert(unit.begin(), unit.end());
    units.push_back(std::move(unit));
  }
  std::stable_sort(units.begin(), units.end(),
                   [&](const Unit& a, const Unit& b) { return promise_of(a) < promise_of(b); });
  return units;
}

double Tuner::promise_of(const Unit& unit) const {
  double promise = 0;
  for (const Candidate& candidate : candidates_) {
    for (const std::string& knob : unit) {
      const auto found = candidate.changes.find(knob);
      const auto set = outcome_.best.find(knob);
      if (found != candidate.changes.end() && set != outcome_.best.end() && found->second == set->second) {
        promise = std::max(promise, candidate.promise);
      }
    }
  }
  return promise;
}

void Tuner::take_removals(std::stop_token stop) {
  const std::vector<Unit> units = unconfirmed();
  if (units.size() < 2) {
    return;  // a single change was confirmed by the trial that took it
  }
  // The least promising half goes in one trial; the others one by one, the likeliest to do harm unseen first.
  const auto all = std::span(units);
  const std::size_t half = units.size() / 2;
  const bool gone = remove_units(all.first(half), stop);
  for (std::size_t i = units.size(); i-- > half;) {
    remove_units(all.subspan(i, 1), stop);
  }
  if (!gone && half > 1) {
    split_and_remove(all.first(half), stop);
  }
}

/// Without workers their other settings are dead letters, whatever a noisy trial said.
void Tuner::drop_dead_letters() {
  if (knobs::value_of(knobs::overlaid(settings_, outcome_.best), "loader.workers") == "0") {
    outcome_.best.erase("loader.prefetch_factor");
    outcome_.best.erase("loader.persistent_workers");
  }
}

/// The group as a whole was needed: which of its parts?
void Tuner::split_and_remove(std::span<const Unit> group, std::stop_token stop) {
  const auto lower = group.first(group.size() / 2);
  const auto upper = group.subspan(group.size() / 2);
  const bool lower_gone = remove_units(lower, stop);
  if (!lower_gone && lower.size() > 1) {
    split_and_remove(lower, stop);
  }
  // When the lower part could go, a single upper one must be what was needed.
  const bool upper_gone = (!lower_gone || upper.size() > 1) && remove_units(upper, stop);
  if (!upper_gone && upper.size() > 1) {
    split_and_remove(upper, stop);
  }
}

/// True when the whole group was taken back.
bool Tuner::remove_units(std::span<const Unit> group, std::stop_token stop) {
  if (group.empty() || !may_go_on(stop, 0)) {
    return false;
  }
  std::string what = "without";
  for (const Unit& unit : group) {
    for (const std::string& knob : unit) {
      what += " " + knob;
    }
  }
  const double before = incumbent_.rate;
  // Less than what is worth taking: several knobs that each give a little must not go one after the other.
  const double margin = -0.75;
  // One lucky run must not take several at once.
  const Judgement judgement =
      try_settings(without(outcome_.best, group), "removal", what, margin, stop, group.size() > 1);
  if (judgement == Judgement::kBetter) {
    if (incumbent_.rate < before * (1 + noise())) {
      // Both are measurements of equally good settings, and the better of several noisy ones is too good.
      incumbent_.rate = (incumbent_.rate + before) / 2;
    }
    return true;
  }
  if (judgement == Judgement::kNoGain && group.size() == 1 && last_ratio_ > 0) {
    for (const std::string& knob : group.front()) {
      gains_[knob] = 1 / last_ratio_;
    }
  }
  return false;
}

}  // namespace unidle::tune
