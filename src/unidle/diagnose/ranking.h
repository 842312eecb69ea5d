// The order of findings, what is folded, and the verdict. docs/diagnose.md explains why.
#pragma once

#include "unidle/diagnose/context.h"
#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose {

/// True when `finding` leads whatever else fired: a failure, or a device that is not used at all.
bool leads(const Finding& finding);

/// Sorts, strongest first: leading findings, then those whose bound is worth it (min_bound), then by severity, then by
/// the share that can be won, with null shares last. Hints come last. Stable.
void rank(std::vector<Finding>& findings, const Policy& policy = {});

/// Removes findings whose loss (by half or more) a more specific finding explains, and adds a line to the evidence of
/// the strongest one that does. Returns the removed ids. REQUIRES: `findings` ranked.
std::vector<std::string> fold(std::vector<Finding>& findings, Language language = Language::kEnglish);

/// REQUIRES: `findings` ranked and folded.
Verdict verdict_of(const std::vector<Finding>& findings, const std::vector<Abstention>& abstained,
                   const Context& context, const Policy& policy);

}  // namespace unidle::diagnose
