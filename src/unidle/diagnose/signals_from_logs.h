// Signals from the logs of a run without a record.
#pragma once

#include <filesystem>
#include <vector>

#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"
#include "unidle/logs/source.h"

namespace unidle::diagnose {

/// Detects each file's kind by its content and joins the files as logs of one run. Ignores files without usable
/// content, such as Slurm's empty ones, if another one has some. Throws kInput (subject: the file) when a file is
/// missing, binary or damaged, or when none has usable content. Evidence is worded in `language`; quotes stay as they
/// are.
Signals read_log_signals(const std::vector<std::filesystem::path>& files, Language language = Language::kEnglish,
                         const logs::OnRead& on_read = {});

}  // namespace unidle::diagnose
