// Finds failures in a program's output, whatever its exit code.
#pragma once

#include <string>
#include <string_view>

#include "unidle/diagnose/signals.h"
#include "unidle/logs/text_log.h"

namespace unidle::diagnose::detail {

/// Converts a failure found in a log to the form that rules use.
PrintedFailure printed_failure(const logs::DecisiveFailure& failure);

/// The failures in `tail`, the end of a stream; a final "unidle: ..." line counts as one too.
PrintedEnd end_of_output(std::string_view tail);

/// The failures that the run printed on either stream.
PrintedEnd printed_end(const Signals& signals);

}  // namespace unidle::diagnose::detail
