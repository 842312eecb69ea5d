// The changes that a person would make to a Python file, as a patch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "unidle/tune/advice/code_changes.h"

namespace unidle::tune {

/// A unified diff for the files below `folder` that `changes` name: arguments of the loader at its line, the number of
/// batches of a step where its name gets it, `fused` of the only optimiser that the file makes, `set_to_none` of its
/// only zero_grad, `unidle.cached` above the function that makes samples slow. What cannot be placed for certain is
/// left to the line of code that every change has. Empty when there is nothing to show; never throws for what the files
/// hold.
std::string code_patch(const std::vector<CodeChange>& changes, const std::filesystem::path& folder);

}  // namespace unidle::tune
