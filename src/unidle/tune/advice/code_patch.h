// Changes of a Python program as a patch.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/tune/advice/code_changes.h"

namespace unidle::tune {

/// A unified diff of the files below `folder` that `changes` name. It sets arguments of the loader at its line, the
/// number of batches per step where it is assigned, `fused` of the file's only optimiser, `set_to_none` of its only
/// zero_grad, and puts `unidle.cached` above the function that makes samples slow. Changes whose place is uncertain are
/// left out; each change has a line of code to show instead. Empty when no change could be placed. Never throws because
/// of the files' content.
std::string code_patch(std::vector<CodeChange> changes, const std::filesystem::path& folder);

/// The options with which `patch -i FILE` applies the patch in `folder`; --follow-symlinks if a file is a link. Empty
/// if GNU patch would refuse, because a link to a folder leads out of `folder`.
std::string patch_options(std::string_view patch, const std::filesystem::path& folder);

}  // namespace unidle::tune
