// Signals of runs that other tests start from and bend.
#pragma once

#include "unidle/diagnose/rule.h"
#include "unidle/diagnose/signals.h"

namespace unidle::diagnose::testing {

/// A run of 100 s on four CPUs with every signal known and nothing wrong.
Signals healthy_cpu();
/// The same on one GPU that has tensor cores.
Signals healthy_gpu();
/// healthy_cpu() with no workers and a step that waits `share` of its time for input.
Signals waiting_cpu(double share);

/// Gives `input` of each step to waiting, and scales the rest of the step down.
void set_input(Signals& signals, double input);
void set_effective(Signals& signals, const std::string& knob, const std::string& value);

/// Asks one rule. REQUIRES: there is a rule of that id.
Evaluation ask(std::string_view id, const Signals& signals, const Policy& policy = {});

}  // namespace unidle::diagnose::testing
