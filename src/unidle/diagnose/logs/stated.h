// Measurements that a log states about its steps, as signals.
#pragma once

#include "unidle/diagnose/logs/job_logs.h"

namespace unidle::diagnose::detail {

/// Replaces what the lines' times give: a program measures its own steps better.
void add_stated(const unidle::logs::TextLog& log, Language language, Signals& signals);

}  // namespace unidle::diagnose::detail
