// Advice on small micro-batches that no option of the program changes.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "unidle/knobs/settings.h"

namespace unidle::tune {

/// For a step of several micro-batches: proposes one batch of the same samples, as a sentence and, when both lines are
/// known, as a patch to review. The text says that this was not measured. `places`: see code_changes. Empty when a step
/// has one batch. Never throws because of the files' content.
std::string batch_advice(const knobs::Settings& settings, const std::map<std::string, std::string>& places,
                         const std::filesystem::path& folder);

}  // namespace unidle::tune
