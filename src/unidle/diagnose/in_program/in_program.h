// Fixes in the words of the program: the argument of its call, its own option, its key in a file.
#pragma once

#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/policy.h"
#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"

namespace unidle::diagnose {

/// Sets Change::in_program of each fix whose knob the program sets at a known place, Finding::lines where no fix
/// shows the lines to change, and ComputePlace::is_backward, and adds how samples can cost less. Reads the program's
/// files as they are now, and shows lines only where they still contain what the run had. Never throws because of them.
void put_in_program(const Signals& signals, const Policy& policy, Diagnosis& diagnosis,
                    Language language = Language::kEnglish);

}  // namespace unidle::diagnose
