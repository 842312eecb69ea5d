// What is said first, what is left out, and what the run is called. docs/diagnose.md says why.
#pragma once

#include "unidle/diagnose/context.h"
#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose {

/// True when `finding` leads whatever else fired: a failure, or a device that is not used at all.
bool leads(const Finding& finding);

/// Strongest first: what leads, then severity, then share with null shares last; the rest keeps its order.
void rank(std::vector<Finding>& findings);

/// Takes out findings whose loss a more specific finding explains (by half and more), leaving a line in the evidence of
/// the strongest that does. Returns the ids that were taken out. REQUIRES: `findings` ranked.
std::vector<std::string> fold(std::vector<Finding>& findings, Language language = Language::kEnglish);

/// REQUIRES: `findings` ranked and folded.
Verdict verdict_of(const std::vector<Finding>& findings, const Context& context, const Policy& policy);

}  // namespace unidle::diagnose
