// Reads thresholds from a user's file, which replace the defaults.
#pragma once

#include <filesystem>
#include <string>

#include "unidle/diagnose/policy.h"

namespace unidle::diagnose {

/// The default policy with the thresholds in the file `path` replaced. The file is YAML (or JSON) with one threshold's
/// name and value per line. Throws kInput (subject: the file, with the line when known) when the file cannot be read or
/// is not such a list, names an unknown threshold or one twice, or has a value that is not a number >= 0.
Policy read_policy(const std::filesystem::path& path);

/// Every threshold with its value, in the format of read_policy().
std::string to_yaml(const Policy& policy);

}  // namespace unidle::diagnose
