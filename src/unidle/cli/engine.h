// unidle-train, which lies beside this program and links torch.
#pragma once

#include <string>
#include <vector>

namespace unidle::cli {

/// Its path. Throws kMissing when it was not built.
std::string engine_program();

/// Becomes unidle-train with these arguments. Throws kMissing when it was not built.
int become_engine(const std::vector<std::string>& arguments);

}  // namespace unidle::cli
