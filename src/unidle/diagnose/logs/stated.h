// What a log states of its steps, as signals.
#pragma once

#include "unidle/diagnose/logs/job_logs.h"

namespace unidle::diagnose::detail {

/// In place of what the times in the lines tell: a program measures its own steps better.
void add_stated(const unidle::logs::TextLog& log, Language language, Signals& signals);

}  // namespace unidle::diagnose::detail
