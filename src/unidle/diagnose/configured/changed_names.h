// Finds variables of a Python script that look like constants but are reassigned.
#pragma once

#include <string>
#include <string_view>

namespace unidle::diagnose {

/// True when the variable `name` of the script `text` only looks like a constant: it is reassigned at the top level or
/// by a function that declares it global, or updated from itself anywhere (bs //= 2, bs = max(1, bs // 2)). A local
/// variable of the same name in a function or class does not count.
bool is_changed(const std::string& text, std::string_view name);

}  // namespace unidle::diagnose
