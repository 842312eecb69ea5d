// `unidle-train predictor`: a TorchScript module that computes features, as a program for `unidle cache warm`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace unidle::engine {

/// Its options; what is returned serves until its input ends, and returns the exit code.
std::function<int()> set_up_predictor(CLI::App& app);

}  // namespace unidle::engine
