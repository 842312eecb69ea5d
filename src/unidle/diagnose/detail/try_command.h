// The command that tries a fix without touching any file.
#pragma once

#include <optional>
#include <string>

#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose::detail {

/// `unidle run --apply ...` for a program that is observed from outside, `unidle train ... KEY=VALUE` for a workload of
/// the engine. Nothing when the record lacks its command, or when no fix of the finding has a value that can be set at
/// run time without changing what is trained.
std::optional<std::string> try_command(const Diagnosis& diagnosis, const Finding& finding);

}  // namespace unidle::diagnose::detail
