// Variables of a Python script that the script itself gives another value than the first one.
#pragma once

#include <string>
#include <string_view>

namespace unidle::diagnose {

/// True where the variable `name` of the script `text` is a constant by its looks only: it is assigned anew at the top
/// level or by a function that declares it global, or made of itself anywhere (bs //= 2, bs = max(1, bs // 2)). Another
/// variable of that name, within a function or a class, is none.
bool is_changed(const std::string& text, std::string_view name);

}  // namespace unidle::diagnose
