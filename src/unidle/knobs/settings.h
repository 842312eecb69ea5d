// Reads and writes the knobs that a configuration sets.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs {

/// Knob name to canonical value. Knobs that are not set are absent.
using Settings = std::map<std::string, std::string>;

/// All knobs that `config` sets under their own names. Skips a precision.amp of true, and values that leave the choice
/// to the program. Throws kInput (subject "file:line: key", with the expected type) when a value is not of its knob's
/// type.
Settings read_settings(const ConfigFile& config);

/// The same for any program's configuration, with the names of its framework. Skips computed values and values whose
/// comment gives a reason.
Settings read_foreign_settings(const ConfigFile& config);

/// Makes `config` say it: under the knob's own name where that is a key of it or it is a workload's, otherwise as its
/// framework has it. Returns the paths of the edited keys. Throws kInput when the file cannot say it.
std::vector<std::string> write_setting(ConfigFile& config, const std::string& knob, const std::string& value);
bool can_write(const ConfigFile& config, const std::string& knob, const std::string& value);

/// The value in force: what is set, otherwise the knob's fallback.
std::string value_of(const Settings& settings, std::string_view knob);
/// As a number; nothing when it is none.
std::optional<long long> integer_of(const Settings& settings, std::string_view knob);

/// Samples per step from the settings: micro-batch times accumulation; an unset one counts as 1.
long long effective_batch(const Settings& settings);

/// `base` with `changes` applied.
Settings overlaid(Settings base, const Settings& changes);

/// Whether a changed knob is semantic.
bool is_semantic(const Settings& changes);
/// Whether no changed knob alters the arithmetic.
bool is_exact(const Settings& changes);

/// "loader.workers=2"
std::string pair_key(const std::string& knob, const std::string& value);
/// "loader.workers=2 precision.amp=bf16"
std::string describe(const Settings& changes);

}  // namespace unidle::knobs
