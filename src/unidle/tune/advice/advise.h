// Changes that follow from hardware and configuration alone, without measurement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/knobs/change.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/settings.h"
#include "unidle/language/language.h"
#include "unidle/traits/workload.h"
#include "unidle/tune/advice/hardware.h"

namespace unidle::tune {

/// How far advice without measurement goes: exact knobs only; numeric ones too; also changes that help most programs
/// but not all.
enum class Profile { kLight, kBalanced, kFast };

/// Only changes that are safe to predict: one value per knob, exact and numeric knobs, the same effective batch.
/// Semantic changes are never made here, even with --allow semantic: their effect cannot be predicted.
std::vector<knobs::Change> advise(const knobs::ConfigFile& config, const traits::Workload* workload,
                                  const Hardware& hardware, bool only_present = false,
                                  Profile profile = Profile::kBalanced);

/// Edits `config` with the changes, keeping every other byte. Throws like ConfigFile::set.
void apply_changes(std::vector<knobs::Change>& changes, knobs::ConfigFile& config);

/// The diff of the two texts, with each change's reason after the line that it explains.
std::string explained_diff(const std::string& before, const knobs::ConfigFile& after,
                           const std::vector<knobs::Change>& changes, const std::string& name,
                           Language language = Language::kEnglish);

}  // namespace unidle::tune
