// How far a run got, and how long the whole run would have taken.
#pragma once

#include "unidle/diagnose/logs/job_logs.h"

namespace unidle::diagnose::detail {

/// Adds evidence about a time limit or a failure. Requires a counter with a total, and times in the lines; adds nothing
/// without them.
void add_how_far(const unidle::logs::TextLog& log, const JobTimes& times, Language language, Signals& signals);

}  // namespace unidle::diagnose::detail
