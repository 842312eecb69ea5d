// The fixes of a diagnosis as changes to try.
#pragma once

#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/tune/trial.h"

namespace unidle::tune {

/// Fixes without a value, of knobs that are not in the catalogue, with values that are not of their knob's type, and
/// (unless allowed) semantic ones are left out. Batch size and accumulation of one finding stay together.
std::vector<Suggestion> suggestions_of(const diagnose::Diagnosis& diagnosis, bool allow_semantic);

}  // namespace unidle::tune
