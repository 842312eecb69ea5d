// Interprets a value as the program that reads the file does.
#pragma once

#include <string>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs::detail {

/// Numbers in their usual form, as the format's reader in Python interprets them. In YAML (PyYAML reads 1.1) 010 is 8,
/// 1_024 is 1024, 0x10 is 16 and 1:30 is 90; Python and TOML have 1_024, 0x10, 0o10. Other values are unchanged.
std::string value_of(Format format, const Scalar& scalar);

}  // namespace unidle::knobs::detail
