// Where the monitor's servers listen.
#pragma once

#include <string>

namespace unidle::monitor {

/// Completes "HOST:PORT", ":PORT" or "PORT" to "HOST:PORT"; the default host is 127.0.0.1. Throws kUsage for anything
/// else, and names `option`.
std::string listen_address(const std::string& option, const std::string& address);

}  // namespace unidle::monitor
