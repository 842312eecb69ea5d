// What execve() takes.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace unidle {

/// Our environment with `added` in place of entries of the same names, as "NAME=value". Not safe beside setenv().
std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added);

/// The strings' data and a closing null. Valid as long as `strings` stays as it is.
std::vector<char*> c_strings(std::vector<std::string>& strings);

}  // namespace unidle
