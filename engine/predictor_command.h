// `unidle-train predictor`: serves a model that computes features to `unidle cache warm`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace unidle::engine {

/// Adds the options; the returned function serves until its input ends, and returns the exit code.
std::function<int()> set_up_predictor(CLI::App& app);

}  // namespace unidle::engine
