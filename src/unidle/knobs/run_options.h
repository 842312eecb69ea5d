// The options of `unidle run` with which a run is started again.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "unidle/knobs/settings.h"

namespace unidle::knobs {

struct RunOptions {
  std::optional<std::int64_t> steps;
  std::optional<double> timeout_s;
  Settings applied;  // that the running program was asked to take

  bool operator==(const RunOptions&) const = default;
};

/// {"steps": 200, "timeout_s": 600, "apply": {"loader.workers": "2"}}, with those keys that have a value.
nlohmann::json to_json(const RunOptions& options);
/// Leaves out what is none of it: records may be damaged, or of another version.
RunOptions run_options_from(const nlohmann::json& recorded);

/// "--steps 200 --apply loader.workers=2 ", quoted for a shell, without the applied knobs in `changed`. Ends with a
/// blank; empty without options.
std::string in_words(const RunOptions& options, const std::set<std::string>& changed = {});

/// "unidle run WORDS-- COMMAND" for words of in_words(); the command alone if they are empty.
std::string with_options(const std::string& words, const std::string& command);

}  // namespace unidle::knobs
