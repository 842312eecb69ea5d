// What the record of an optimisation holds, read back as result.h writes it.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "unidle/knobs/change.h"
#include "unidle/tune/search/trial_log.h"
#include "unidle/tune/search/verifier.h"

namespace unidle::tune {

/// Entries of another form, as other versions may have written them, are only counted.
struct Recorded {
  std::vector<knobs::Change> changes;
  std::vector<LoggedTrial> trials;
  std::optional<Verification> verification;
  std::size_t unreadable = 0;
};

/// From the meta keys "changes", "trials" and "verification"; null where a record has none. Never throws for what they
/// hold.
Recorded recorded(const nlohmann::json& changes, const nlohmann::json& trials, const nlohmann::json& verification);

}  // namespace unidle::tune
