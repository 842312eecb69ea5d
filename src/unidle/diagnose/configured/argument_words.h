// Names of a program's arguments, and whether its scripts change them.
#pragma once

#include <string>
#include <string_view>

namespace unidle::diagnose {

/// The name that a parsed argument has in the program: "--batch-size" and "data.batch_size" give "batch_size".
std::string argument_name(std::string_view key);

/// True when `scripts` (their text) assign a new value to the attribute or entry `name`: args.batch_size //= 4.
/// Attributes of self (self.batch_size = batch_size) and plain copies do not count.
bool is_reassigned(const std::string& scripts, const std::string& name);

}  // namespace unidle::diagnose
