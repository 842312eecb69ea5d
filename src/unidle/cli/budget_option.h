// The option --budget.
#pragma once

#include <string>

#include "unidle/base/error.h"
#include "unidle/base/units.h"

namespace unidle::cli {

/// Throws kUsage when `text` is not a time.
inline double budget_seconds(const std::string& text) {
  const auto seconds = parse_seconds(text);
  if (!seconds) {
    throw Error(ErrorCode::kUsage, "--budget", "'" + text + "' is not a time", "write 90s, 10m or 1h");
  }
  return *seconds;
}

}  // namespace unidle::cli
