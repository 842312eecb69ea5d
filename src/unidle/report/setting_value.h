// Are two spellings of a setting the same value?
#pragma once

#include <string_view>

namespace unidle::report {

/// "True" and "true", "off" and "False", "8" and "8.0" are the same; "true" and "bf16" are not.
bool same_value(std::string_view a, std::string_view b);

}  // namespace unidle::report
