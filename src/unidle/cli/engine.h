// Finds and starts unidle-train, which lies beside this program and links torch.
#pragma once

#include <string>
#include <vector>

namespace unidle::cli {

/// Path of unidle-train. Throws kMissing when it was not built.
std::string engine_program();

/// Replaces this process with unidle-train and these arguments. Throws kMissing when it was not built.
int become_engine(const std::vector<std::string>& arguments);

}  // namespace unidle::cli
