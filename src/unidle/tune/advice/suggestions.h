// The fixes of a diagnosis as changes to try.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/knobs/settings.h"

namespace unidle::tune {

/// A change that the diagnosis of a trial proposes.
struct Suggestion {
  knobs::Settings changes;
  std::string finding;  // id of the rule
  std::string how;
  double share = 0;  // of wall time that the cause explains; 0 when unknown
};

/// Fixes without a value, of knobs that are not in the catalogue, with values that are not of their knob's type, and
/// (unless allowed) semantic ones are left out. Batch size and accumulation of one finding stay together.
std::vector<Suggestion> suggestions_of(const diagnose::Diagnosis& diagnosis, bool allow_semantic);

/// Validation that takes a fifth of the loop or more is worth making rarer in a program that lets us, though it does
/// not dominate: down to a tenth. `effective`: settings of the trial.
std::optional<Suggestion> rarer_validation(const diagnose::Diagnosis& diagnosis, const knobs::Settings& effective);

}  // namespace unidle::tune
