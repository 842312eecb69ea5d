// `unidle export`: weights of a checkpoint as files that Python reads.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace unidle::engine {

/// Its options; what is returned does it, and returns the exit code.
std::function<int()> set_up_export(CLI::App& app);

}  // namespace unidle::engine
