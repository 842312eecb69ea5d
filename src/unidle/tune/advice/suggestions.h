// Fixes of a diagnosis as changes to try.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/knobs/settings.h"

namespace unidle::tune {

/// A change that a trial's diagnosis proposes.
struct Suggestion {
  knobs::Settings changes;
  std::string finding;  // id of the rule
  std::string how;
  double share = 0;  // share of wall time that the cause explains; 0 when unknown
};

/// Leaves out fixes without a value, of unknown knobs, with values of the wrong type, and semantic ones unless allowed.
/// Batch size and accumulation of one finding stay together.
std::vector<Suggestion> suggestions_of(const diagnose::Diagnosis& diagnosis, bool allow_semantic);

/// Suggests a longer validation interval, down to a tenth of the loop, when validation takes a fifth of it or more and
/// the program allows it, even if it does not dominate. `effective`: the trial's settings.
std::optional<Suggestion> rarer_validation(const diagnose::Diagnosis& diagnosis, const knobs::Settings& effective);

}  // namespace unidle::tune
