// `unidle export`: writes a checkpoint's weights as files that Python reads.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace unidle::engine {

/// Adds the options; the returned function runs the command and returns the exit code.
std::function<int()> set_up_export(CLI::App& app);

}  // namespace unidle::engine
