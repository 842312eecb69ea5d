// The script of the live page: live.js of this folder, as text.
#pragma once

#include <string_view>

namespace unidle::monitor {

std::string_view live_script();

}  // namespace unidle::monitor
