// The part of the Chinese catalogue that is about rules.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace unidle::diagnose::detail {

using Messages = std::vector<std::pair<std::string_view, std::string_view>>;  // English, Chinese

Messages chinese_rule_messages();
Messages chinese_timeline_messages();

}  // namespace unidle::diagnose::detail
