// Signals from a run record.
#pragma once

#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"
#include "unidle/record/record.h"

namespace unidle::diagnose {

/// Never throws on odd data: what cannot be read stays missing. Reads the training process with most steps. `language`:
/// for the description of how the device's busy time was measured. A record without an end (still running, or killed)
/// is measured up to its last timestamp.
Signals read_signals(const record::Reader& reader, Language language = Language::kEnglish);

}  // namespace unidle::diagnose
