// Fixes of a diagnosis as changes to try.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/knobs/settings.h"
#include "unidle/tune/advice/proposals.h"

namespace unidle::tune {

/// Fixes of warnings. Leaves out fixes without a value, of unknown knobs, with values of the wrong type, and semantic
/// ones unless allowed. Batch size and accumulation of one finding stay together.
std::vector<Proposal> suggestions_of(const diagnose::Diagnosis& diagnosis, bool allow_semantic);

/// The same for hints, whose gain depends on the program: each is measured on its own.
std::vector<Proposal> hints_of(const diagnose::Diagnosis& diagnosis, bool allow_semantic);

/// Suggests a longer validation interval, down to a tenth of the loop, when validation takes a fifth of it or more and
/// the program allows it, even if it does not dominate. `effective`: the trial's settings.
std::optional<Proposal> rarer_validation(const diagnose::Diagnosis& diagnosis, const knobs::Settings& effective);

}  // namespace unidle::tune
