// The style sheet and the script of the page: page.css and page.js of this folder, as text.
#pragma once

#include <string_view>

namespace unidle::report {

std::string_view style();
std::string_view script();

}  // namespace unidle::report
