// Names of a program's arguments, and whether its scripts change them.
#pragma once

#include <string>
#include <string_view>

namespace unidle::diagnose {

/// "--batch-size", "data.batch_size" -> "batch_size": the name that a parsed argument has in the program.
std::string argument_name(std::string_view key);

/// True where `scripts` (their text) give the attribute or entry `name` another value than the one that it has:
/// args.batch_size
/// //= 4. What an object keeps of its own (self.batch_size = batch_size) and plain copies are none.
bool is_reassigned(const std::string& scripts, const std::string& name);

}  // namespace unidle::diagnose
