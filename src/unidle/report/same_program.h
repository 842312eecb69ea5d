// Whether two runs are of one program that was not changed in between.
#pragma once

#include "unidle/account/run_data.h"

namespace unidle::report {

/// True if command, source files, versions of Python and torch, requested changes and the machine are the same in both
/// records. False where one of them is unknown: source files are known of Python programs.
bool same_program(const account::RunData& a, const account::RunData& b);

}  // namespace unidle::report
