// Names of settings that say how often a program does something.
#pragma once

#include <string_view>

namespace unidle::knobs {

/// Whether the words of a key say that it is a validation interval, in whatever unit: "eval_every",
/// "--val-check-interval", but not "eval_iters", which is a length.
bool names_interval_of_validation(std::string_view key);

/// Whether the key may name such an interval: "--eval-steps" is one in some programs, and a length in others.
bool may_name_interval_of_validation(std::string_view key);

}  // namespace unidle::knobs
