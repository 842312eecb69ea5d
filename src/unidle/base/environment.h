// The environment of processes and of this machine.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace unidle {

/// This process's environment as "NAME=value", with entries replaced or added from `added`. Not safe while another
/// thread calls setenv().
std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added);

/// Pointers to the strings and a closing null. Valid while `strings` does not change.
std::vector<char*> c_strings(std::vector<std::string>& strings);

/// This machine's name; "localhost" if it is unknown.
std::string host_name();

}  // namespace unidle
