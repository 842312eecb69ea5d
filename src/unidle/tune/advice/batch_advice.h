// What a person could do about small micro-batches that no option of the program changes.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "unidle/knobs/settings.h"

namespace unidle::tune {

/// Where several micro-batches make a step: one batch of the same samples, as a sentence and, where both lines are
/// known, as a patch to review. Nothing of it was measured, and it says so. `places`: see code_changes. Empty where a
/// step has one batch. Never throws for what the files hold.
std::string batch_advice(const knobs::Settings& settings, const std::map<std::string, std::string>& places,
                         const std::filesystem::path& folder);

}  // namespace unidle::tune
