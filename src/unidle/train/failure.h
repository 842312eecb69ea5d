// Classifies and shortens exceptions of torch.
#pragma once

#include <exception>
#include <string>

namespace unidle::train {

/// Whether the device or the host ran out of memory, according to torch's allocators or C++.
bool is_out_of_memory(const std::exception& failure);

/// The last line of an exception in a torch module, which is the module's own message: torch puts the source location
/// before it.
std::string last_line_of(const std::exception& failure);

}  // namespace unidle::train
