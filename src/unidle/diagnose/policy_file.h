// Thresholds out of a file of the user's, in place of our own.
#pragma once

#include <filesystem>
#include <string>

#include "unidle/diagnose/policy.h"

namespace unidle::diagnose {

/// The default policy with the thresholds that `path` names replaced. The file is YAML (or JSON): a threshold's name
/// and its value, one a line. Throws kInput (subject: the file, with the line where one is at fault) when it cannot be
/// read, is no such list, names a threshold that there is not or twice, or has a value that is no number from 0 on.
Policy read_policy(const std::filesystem::path& path);

/// Every threshold with its value, as read_policy takes it.
std::string to_yaml(const Policy& policy);

}  // namespace unidle::diagnose
