// The program's own setting of how often it validates: EVAL_EVERY = 20, --eval-interval 20, val_freq: 5.
#pragma once

#include <optional>
#include <string>

#include "unidle/diagnose/in_program/sources.h"
#include "unidle/diagnose/signals.h"

namespace unidle::diagnose {

/// The change that makes validations `rarer_by` times rarer, in the unit of the setting, whatever that is. An option of
/// the command if it sets the interval, otherwise a file's lines. Nothing when no setting, or more than one, has such a
/// name.
std::optional<knobs::InProgram> with_rarer_own_interval(const Signals& signals, Sources& sources, double rarer_by);

/// Whether words in the program's files and its command tell of a decision by results of validation: early stopping, a
/// schedule that waits for a plateau, the best checkpoint. True when the program cannot be read.
bool may_decide_by_validation(const Signals& signals, const Sources& sources);

}  // namespace unidle::diagnose
