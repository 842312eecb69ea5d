// What may be tried, and in which order.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "unidle/knobs/settings.h"
#include "unidle/tune/advice/proposals.h"
#include "unidle/tune/search/refusals.h"

namespace unidle::tune {

/// Knobs that are tried and removed together.
using Unit = std::vector<std::string>;

/// Knobs that only work together.
const std::vector<Unit>& tied_knobs();

/// True when `knob` is in `only` or tied to one of its knobs, or when `only` is empty.
bool is_asked_for(const std::set<std::string>& only, const std::string& knob);

/// Possible changes, from hardware, diagnosis and the search itself. Not thread-safe.
class Candidates {
 public:
  struct Options {
    std::set<std::string> only;             // knobs to search; empty: all
    bool batch_has_its_own_search = false;  // then its candidates are left to that search
  };

  /// `settings`: the configuration's. `refusals` must outlive this object.
  Candidates(knobs::Settings settings, const Refusals& refusals, Options options);

  void add(const std::vector<Proposal>& proposals);
  /// Keeps the reason of changes that the search has already tried.
  void add_tried(const knobs::Settings& changes, const std::string& reason, double promise);

  bool empty() const { return all_.empty(); }
  /// All changes worth trying together before measurements, or only the exact ones; of several for one knob, the most
  /// promising. Without those that `best` contains or that were tried or refused.
  knobs::Settings bundle(const knobs::Settings& best, bool exact_only) const;
  /// The most promising of the remaining changes, which is then marked as tried.
  std::optional<knobs::Settings> take_next(const knobs::Settings& best);
  /// How many remain.
  int untried(const knobs::Settings& best) const;
  void mark_tried(const knobs::Settings& changes);
  /// Lowers the promise of other values of these knobs, after one value gained nothing.
  void lower_alternatives(const knobs::Settings& changes);

  /// Knobs of `best` that were not measured alone (not in `measured`), grouped into units, least promising first.
  std::vector<Unit> unconfirmed(const knobs::Settings& best, const std::map<std::string, double>& measured) const;
  /// Why `knob` was set to `value`, by the most promising candidate with a reason.
  std::optional<std::string> reason_of(const std::string& knob, const knobs::Value& value) const;

 private:
  void add(Proposal candidate);
  bool is_left_to_the_batch_search(const knobs::Settings& changes) const;
  bool is_new(const Proposal& candidate, const knobs::Settings& best) const;
  double promise_of(const Unit& unit, const knobs::Settings& best) const;

  knobs::Settings settings_;
  const Refusals& refusals_;
  Options options_;
  std::vector<Proposal> all_;
};

}  // namespace unidle::tune
