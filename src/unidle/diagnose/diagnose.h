// The way in: signals or a record to a diagnosis.
#pragma once

#include <filesystem>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/policy.h"
#include "unidle/diagnose/signals.h"
#include "unidle/logs/source.h"
#include "unidle/record/record.h"

namespace unidle::diagnose {

/// Asks every rule, folds, ranks and gives the verdict. A pure function: the same signals give the same diagnosis.
/// Evidence, fixes and missing signals are worded in `language`; all else does not depend on it.
Diagnosis diagnose(const Signals& signals, const Policy& policy = {}, Language language = Language::kEnglish);

/// `path`: a record's folder or its record.db. Throws kInput (subject: the path) when it is no record.
Diagnosis diagnose_record(const std::filesystem::path& path, const Policy& policy = {},
                          Language language = Language::kEnglish);

/// file:line of the function whose results a person could keep with unidle.cached, where the time of samples goes;
/// empty where none was seen.
std::string cacheable_function(const record::Reader& record);

/// What the logs of one run tell together: nvidia-smi CSV and dmon, Slurm output, training logs, profiler traces.
/// Throws kInput (subject: the file) when one is missing or damaged, or none tells anything.
Diagnosis diagnose_logs(const std::vector<std::filesystem::path>& files, const Policy& policy = {},
                        Language language = Language::kEnglish, const logs::OnRead& on_read = {});

}  // namespace unidle::diagnose
