// The fixes of a diagnosis as changes to try.
#pragma once

#include <optional>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/tune/trials/trial.h"

namespace unidle::tune {

/// Fixes without a value, of knobs that are not in the catalogue, with values that are not of their knob's type, and
/// (unless allowed) semantic ones are left out. Batch size and accumulation of one finding stay together.
std::vector<Suggestion> suggestions_of(const diagnose::Diagnosis& diagnosis, bool allow_semantic);

/// Validation that takes a fifth of the loop or more is worth making rarer in a program that lets us, though it does
/// not dominate: down to a tenth. `effective`: settings of the trial.
std::optional<Suggestion> rarer_validation(const diagnose::Diagnosis& diagnosis, const knobs::Settings& effective);

/// A trial of another batch size that left no margin in memory counts as failed: full beyond 90 %, or the allocator had
/// to flush its cache to go on. Says so in `result`.
void refuse_full_memory(const diagnose::Diagnosis& diagnosis, const knobs::Settings& changes, TrialResult& result);

}  // namespace unidle::tune
