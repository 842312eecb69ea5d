// The words of a changed setting of a file: "num_workers: 2", "EVAL_EVERY = 80", "default=4".
#pragma once

#include <string>

#include "unidle/knobs/change.h"
#include "unidle/knobs/config_file.h"

namespace unidle::diagnose {

/// Sets words and call of `change` for the setting at `path` with the value `to`.
void put_setting_words(const knobs::ConfigFile& file, const std::string& path, const std::string& to,
                       knobs::InProgram& change);

}  // namespace unidle::diagnose
