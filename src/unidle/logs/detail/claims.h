// Lines by which a program says that it came to its end.
#pragma once

#include "unidle/logs/detail/failures.h"

namespace unidle::logs::detail {

/// "Training complete", "Early stopping triggered", a bare "success"; not "Successfully loaded", not "success rate".
bool claims_end(const LogLine& line);
/// The claim says what succeeded; a bare "success" may be that of something else.
bool names_training(const LogLine& line);

}  // namespace unidle::logs::detail
