// Entry points: from signals, a record or logs to a diagnosis.
#pragma once

#include <filesystem>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/diagnose/policy.h"
#include "unidle/diagnose/signals.h"
#include "unidle/logs/source.h"
#include "unidle/record/record.h"

namespace unidle::diagnose {

/// Asks every rule, folds and ranks the findings, and gives the verdict. A pure function: the same signals give the
/// same diagnosis. `language` affects only the words of evidence, fixes and missing signals.
Diagnosis diagnose(const Signals& signals, const Policy& policy = {}, Language language = Language::kEnglish);

/// `path`: a record's folder or its record.db. Throws kInput (subject: the path) when it is not a record.
Diagnosis diagnose_record(const std::filesystem::path& path, const Policy& policy = {},
                          Language language = Language::kEnglish);

/// file:line of the function in which sample time is spent and whose results unidle.cached could keep; empty when none
/// was seen.
std::string cacheable_function(const record::Reader& record);

/// Diagnoses the logs of one run together: nvidia-smi CSV and dmon, Slurm output, training logs, profiler traces.
/// Throws kInput (subject: the file) when one is missing or damaged, or when none has usable content.
Diagnosis diagnose_logs(const std::vector<std::filesystem::path>& files, const Policy& policy = {},
                        Language language = Language::kEnglish, const logs::OnRead& on_read = {});

}  // namespace unidle::diagnose
