// What may be tried, and in which order.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "unidle/knobs/settings.h"
#include "unidle/tune/advice/proposals.h"
#include "unidle/tune/advice/suggestions.h"
#include "unidle/tune/search/refusals.h"

namespace unidle::tune {

/// Knobs that are tried and taken back together.
using Unit = std::vector<std::string>;

/// Knobs that mean something only together.
const std::vector<Unit>& tied_knobs();

/// `knob` is one of `only`, or tied to one; with none given every knob is asked for.
bool is_asked_for(const std::set<std::string>& only, const std::string& knob);

/// Changes that may help, from the hardware, the diagnosis and the search itself. Not thread-safe.
class Candidates {
 public:
  struct Options {
    std::set<std::string> only;             // knobs to search; empty: all
    bool batch_has_its_own_search = false;  // other candidates for it would be tried twice
  };

  /// `settings`: of the configuration. `refusals` must outlive it.
  Candidates(knobs::Settings settings, const Refusals& refusals, Options options);

  void add(const std::vector<Proposal>& proposals);
  /// What the diagnosis of a trial measured goes before what is only known from the hardware.
  void add(const std::vector<Suggestion>& suggestions);
  /// For the reason that it has: the search has tried it.
  void add_tried(const knobs::Settings& changes, const std::string& reason, double promise);

  bool empty() const { return all_.empty(); }
  /// All that is worth trying at once before anything was measured, or the exact part of it, strongest promise first
  /// where two are about one knob. What `best` has already, was tried or refused is left out.
  knobs::Settings bundle(const knobs::Settings& best, bool exact_only) const;
  /// The most promising of what is left. It counts as tried from now on.
  std::optional<knobs::Settings> take_next(const knobs::Settings& best);
  void mark_tried(const knobs::Settings& changes);
  /// One value of these knobs gave nothing: their other values are less promising.
  void lower_alternatives(const knobs::Settings& changes);

  /// Knobs of `best` that were not measured alone (`measured`), those that go together in one unit, the least promising
  /// first.
  std::vector<Unit> unconfirmed(const knobs::Settings& best, const std::map<std::string, double>& measured) const;
  /// Why `knob` was given `value`, by the most promising candidate that says so.
  std::optional<std::string> reason_of(const std::string& knob, const std::string& value) const;

 private:
  struct Candidate {
    knobs::Settings changes;
    std::string reason;
    double promise = 0;
    bool first = false;  // worth trying before anything was measured
    bool tried = false;
  };
  void add(Candidate candidate);
  bool is_left_to_the_batch_search(const knobs::Settings& changes) const;
  bool is_new(const Candidate& candidate, const knobs::Settings& best) const;
  double promise_of(const Unit& unit, const knobs::Settings& best) const;

  knobs::Settings settings_;
  const Refusals& refusals_;
  Options options_;
  std::vector<Candidate> all_;
};

}  // namespace unidle::tune
