// Failures that a program's output shows, whatever its exit code says.
#pragma once

#include <string>
#include <string_view>

#include "unidle/diagnose/signals.h"
#include "unidle/logs/text_log.h"

namespace unidle::diagnose::detail {

/// A failure of a log as rules see it.
PrintedFailure printed_failure(const logs::DecisiveFailure& failure);

/// The failures in `tail`, the end of a stream; an "unidle: ..." line at its end counts as one too.
PrintedEnd end_of_output(std::string_view tail);

/// The failures that the run printed, on either stream.
PrintedEnd printed_end(const Signals& signals);

}  // namespace unidle::diagnose::detail
