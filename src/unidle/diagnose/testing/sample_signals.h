// Signals of sample runs that tests start from and modify.
#pragma once

#include "unidle/diagnose/rule.h"
#include "unidle/diagnose/signals.h"

namespace unidle::diagnose::testing {

/// A run of 100 s on four CPUs with every signal known and nothing wrong.
Signals healthy_cpu();
/// The same on one GPU that has tensor cores.
Signals healthy_gpu();
/// healthy_cpu() without workers, with steps that wait `share` of their time for input.
Signals waiting_cpu(double share);

/// Sets the share of each step spent waiting for input to `input` and scales the rest.
void set_input(Signals& signals, double input);
void set_effective(Signals& signals, const std::string& knob, const std::string& value);

/// Asks one rule. REQUIRES: the rule exists.
Evaluation ask(std::string_view id, const Signals& signals, const Policy& policy = {});

}  // namespace unidle::diagnose::testing
