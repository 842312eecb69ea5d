// The changes that a person would make to a Python file, as a patch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/tune/advice/code_changes.h"

namespace unidle::tune {

/// Sets keyword argument `name` of the call whose opening bracket lies at `open`: its value is replaced, or it is added
/// behind the last argument. Nothing when the brackets do not match, or the arguments end in **something that may hold
/// it.
std::optional<std::string> with_argument(std::string_view text, std::size_t open, std::string_view name,
                                         std::string_view value);

/// A unified diff for the files below `folder` that `changes` name: arguments of the loader at its line, the number of
/// batches of a step where its name gets it, `fused` of the only optimiser that the file makes, `set_to_none` of its
/// only zero_grad. What cannot be placed for certain is left
/// to the line of code that every change has. Empty when there is nothing to show; never throws for what the files
/// hold.
std::string code_patch(const std::vector<CodeChange>& changes, const std::filesystem::path& folder);

}  // namespace unidle::tune
