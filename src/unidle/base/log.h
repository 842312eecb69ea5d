// Logging: spdlog on stderr. $UNIDLE_LOG sets the level (trace, debug, info, warn, error, off); warn by default.
#pragma once

#include <spdlog/spdlog.h>

#include <string_view>

namespace unidle {

/// Sends spdlog's default logger to stderr. Call once, at the start of a program.
void init_log();

/// Prints one line on stderr, "unidle: TEXT". Ignores write errors.
void say(std::string_view text);

}  // namespace unidle
