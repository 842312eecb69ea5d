// From the logs of a run that nobody recorded to what rules may look at.
#pragma once

#include <filesystem>
#include <vector>

#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"
#include "unidle/logs/source.h"

namespace unidle::diagnose {

/// Reads each file by what it holds, whatever its name, and joins them as logs of one run. Files that tell nothing are
/// passed over as long as another one tells something: Slurm leaves empty ones. Throws kInput (subject: the file) when
/// a file is missing, binary or damaged, or none tells anything.
/// Evidence is worded in `language`, what is quoted stays as it is.
Signals read_log_signals(const std::vector<std::filesystem::path>& files, Language language = Language::kEnglish,
                         const logs::OnRead& on_read = {});

}  // namespace unidle::diagnose
