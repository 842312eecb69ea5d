// What torch throws, told apart and in words.
#pragma once

#include <exception>
#include <string>

namespace unidle::train {

/// Whether `failure` says that the device's or the host's memory ran out, as torch's allocators and C++ say it.
bool is_out_of_memory(const std::exception& failure);

/// The last line of what a module of torch raised, which is what the module itself says: torch puts where it happened
/// in front.
std::string last_words(const std::exception& failure);

}  // namespace unidle::train
