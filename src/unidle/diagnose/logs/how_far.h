// How far a run came, and what the whole of it would have needed.
#pragma once

#include "unidle/diagnose/logs/job_logs.h"

namespace unidle::diagnose::detail {

/// Adds evidence of a time limit or a failure. Needs a count with a total and times in the lines; says nothing
/// without.
void add_how_far(const unidle::logs::TextLog& log, const JobTimes& times, Language language, Signals& signals);

}  // namespace unidle::diagnose::detail
