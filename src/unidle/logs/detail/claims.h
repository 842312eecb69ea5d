// Lines by which a program claims to have finished.
#pragma once

#include "unidle/logs/detail/failures.h"

namespace unidle::logs::detail {

/// "Training complete", "Early stopping triggered", a bare "success"; not "Successfully loaded", not "success rate".
bool claims_end(const LogLine& line);
/// Whether the claim says what succeeded; a bare "success" may be about something else.
bool names_training(const LogLine& line);

}  // namespace unidle::logs::detail
