// Words of a command as the program's own parser of arguments takes them, by what its scripts say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unidle::diagnose {

/// `command` with the short and abbreviated options of the program behind its script written out: -b 16, -b16 and
/// --batch 16 are --batch-size 16 where `scripts` (their text) have "-b" beside "--batch-size", or only one option that
/// begins with --batch. What is not clear stays as it is.
std::vector<std::string> with_long_options(const std::vector<std::string>& command, const std::string& scripts);

/// "--batch-size", "data.batch_size" -> "batch_size": the name that a parsed argument has in the program.
std::string argument_name(std::string_view key);

/// True where `scripts` give the attribute or entry `name` another value than the one that it has: args.batch_size
/// //= 4. What an object keeps of its own (self.batch_size = batch_size) and plain copies are none.
bool is_reassigned(const std::string& scripts, const std::string& name);

}  // namespace unidle::diagnose
