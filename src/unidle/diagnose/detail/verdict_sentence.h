// The first sentence of an answer: the verdict, with what the run spends its time on.
#pragma once

#include <string>

#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose::detail {

/// Without a full stop. `finding`: the leading one, or null.
std::string verdict_sentence(const Diagnosis& diagnosis, const Finding* finding, Language language);

/// The sentence that the leading finding's rule provides; empty when the verdict's sentence is used.
std::string sentence_of_rule(const Diagnosis& diagnosis, const Finding* finding, Language language);

/// For a run without a cause: what takes most of its time beside training, if a hint says so; begins with a space.
std::string hint_sentence(const Diagnosis& diagnosis, Language language);

/// The line of the program that computes most of a healthy run. The backward pass takes more than half of most
/// programs: a line of the forward pass that does is worth a look.
std::string most_computed(const Diagnosis& diagnosis, Language language);

/// Whether such a run loses its time within the steps.
bool is_in_steps(Verdict verdict);

}  // namespace unidle::diagnose::detail
