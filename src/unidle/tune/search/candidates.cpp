#include "unidle/tune/search/candidates.h"

#include <algorithm>
#include <utility>

namespace unidle::tune {

namespace {

/// When one value of a knob gains nothing, the promise of its other values is multiplied by this.
constexpr double kAlternativeDecay = 0.7;

bool contains(const Unit& unit, const std::string& knob) {
  return std::find(unit.begin(), unit.end(), knob) != unit.end();
}

bool shares_knob(const knobs::Settings& a, const knobs::Settings& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& change) { return b.contains(change.first); });
}

bool has_all(const knobs::Settings& settings, const knobs::Settings& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& change) { return settings.has(change.first, change.second); });
}

/// The knobs of `best` that belong together with `knob`.
Unit unit_of(const std::string& knob, const knobs::Settings& best) {
  Unit unit{knob};
  for (const Unit& tied : tied_knobs()) {
    if (contains(tied, knob)) {
      unit.clear();
      std::copy_if(tied.begin(), tied.end(), std::back_inserter(unit),
                   [&](const std::string& other) { return best.contains(other); });
    }
  }
  return unit;
}

}  // namespace

const std::vector<Unit>& tied_knobs() {
  static const std::vector<Unit> kTied = {{"batch.size", "batch.accumulation", "optimizer.lr"},
                                          {"loader.pin_memory", "transfer.non_blocking"}};
  return kTied;
}

bool is_asked_for(const std::set<std::string>& only, const std::string& knob) {
  if (only.empty() || only.contains(knob)) {
    return true;
  }
  return std::any_of(tied_knobs().begin(), tied_knobs().end(), [&](const Unit& tied) {
    return contains(tied, knob) &&
           std::any_of(tied.begin(), tied.end(), [&](const std::string& other) { return only.contains(other); });
  });
}

Candidates::Candidates(knobs::Settings settings, const Refusals& refusals, Options options)
    : settings_(std::move(settings)), refusals_(refusals), options_(std::move(options)) {}

void Candidates::add(const std::vector<Proposal>& proposals) {
  for (const Proposal& proposal : proposals) {
    if (!is_left_to_the_batch_search(proposal.changes)) {
      add(proposal);
    }
  }
}

void Candidates::add_tried(const knobs::Settings& changes, const std::string& reason, double promise) {
  add({changes, reason, promise, false, true});
}

void Candidates::add(Proposal candidate) {
  candidate.changes.erase_if([&](const auto& change) { return !is_asked_for(options_.only, change.first); });
  if (candidate.changes.empty()) {
    return;
  }
  const auto same = [&](const Proposal& other) { return other.changes == candidate.changes; };
  const auto known = std::find_if(all_.begin(), all_.end(), same);
  if (known == all_.end()) {
    all_.push_back(std::move(candidate));
  } else if (candidate.promise > known->promise) {
    known->promise = candidate.promise;
    known->reason = candidate.reason;
    known->safe = known->safe || candidate.safe;
  }
}

bool Candidates::is_left_to_the_batch_search(const knobs::Settings& changes) const {
  return options_.batch_has_its_own_search &&
         (changes.contains("batch.size") || changes.contains("batch.accumulation"));
}

bool Candidates::is_new(const Proposal& candidate, const knobs::Settings& best) const {
  const knobs::Settings now = knobs::overlaid(settings_, best);
  bool differs = false;
  for (const auto& [knob, value] : candidate.changes) {
    if (refusals_.contain(knob, value)) {
      return false;
    }
    differs = differs || now.in_force(knob) != value;
  }
  return differs && !candidate.tried;
}

knobs::Settings Candidates::bundle(const knobs::Settings& best, bool exact_only) const {
  std::vector<const Proposal*> ordered;
  for (const Proposal& candidate : all_) {
    if (candidate.safe && is_new(candidate, best) && (!exact_only || knobs::is_exact(candidate.changes))) {
      ordered.push_back(&candidate);
    }
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Proposal* a, const Proposal* b) { return a->promise > b->promise; });
  knobs::Settings changes;
  for (const Proposal* candidate : ordered) {
    if (!shares_knob(candidate->changes, changes)) {
      changes = knobs::overlaid(std::move(changes), candidate->changes);
    }
  }
  return changes;
}

std::optional<knobs::Settings> Candidates::take_next(const knobs::Settings& best) {
  Proposal* next = nullptr;
  for (Proposal& candidate : all_) {
    if (is_new(candidate, best) && (next == nullptr || candidate.promise > next->promise)) {
      next = &candidate;
    }
  }
  if (next == nullptr) {
    return std::nullopt;
  }
  next->tried = true;
  return next->changes;
}

int Candidates::untried(const knobs::Settings& best) const {
  return static_cast<int>(
      std::ranges::count_if(all_, [&](const Proposal& candidate) { return is_new(candidate, best); }));
}

void Candidates::mark_tried(const knobs::Settings& changes) {
  for (Proposal& candidate : all_) {
    candidate.tried = candidate.tried || has_all(changes, candidate.changes);
  }
}

void Candidates::lower_alternatives(const knobs::Settings& changes) {
  for (Proposal& other : all_) {
    other.promise *= !other.tried && shares_knob(other.changes, changes) ? kAlternativeDecay : 1;
  }
}

std::vector<Unit> Candidates::unconfirmed(const knobs::Settings& best,
                                          const std::map<std::string, double>& measured) const {
  std::vector<Unit> units;
  std::set<std::string> done;
  for (const auto& [knob, value] : best) {
    if (measured.contains(knob) || done.contains(knob)) {
      continue;
    }
    units.push_back(unit_of(knob, best));
    done.insert(units.back().begin(), units.back().end());
  }
  std::stable_sort(units.begin(), units.end(),
                   [&](const Unit& a, const Unit& b) { return promise_of(a, best) < promise_of(b, best); });
  return units;
}

double Candidates::promise_of(const Unit& unit, const knobs::Settings& best) const {
  double promise = 0;
  for (const Proposal& candidate : all_) {
    for (const std::string& knob : unit) {
      if (const knobs::Value* set = best.find(knob); set != nullptr && candidate.changes.has(knob, *set)) {
        promise = std::max(promise, candidate.promise);
      }
    }
  }
  return promise;
}

std::optional<std::string> Candidates::reason_of(const std::string& knob, const knobs::Value& value) const {
  const Proposal* best = nullptr;
  for (const Proposal& candidate : all_) {
    if (candidate.changes.has(knob, value) && (best == nullptr || candidate.promise > best->promise)) {
      best = &candidate;
    }
  }
  return best == nullptr ? std::nullopt : std::optional(best->reason);
}

}  // namespace unidle::tune
