// Logging: spdlog on stderr. $UNIDLE_LOG sets the level (trace, debug, info, warn, error, off); warn by default.
#pragma once

#include <spdlog/spdlog.h>

namespace unidle {

/// Sends spdlog's default logger to stderr. Call once, at the start of a program.
void init_log();

}  // namespace unidle
