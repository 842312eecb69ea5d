// Changes shown as code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/report/page/html.h"

namespace unidle::report {

/// A unified diff, its lines coloured by what they do.
Html patch_html(std::string_view patch);

/// Lines before and after; `before` may be empty.
Html lines_change_html(const std::vector<std::string>& before, const std::vector<std::string>& after);

/// Lines as they are; nothing without lines.
Html code_html(const std::vector<std::string>& lines);

/// The place of a change, "train.py:14"; nothing when empty.
Html place_html(const std::string& place);

/// A command to copy.
Html command_to_copy(const std::string& command);

}  // namespace unidle::report
