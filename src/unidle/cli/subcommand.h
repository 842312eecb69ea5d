// A subcommand of `unidle`: one file in commands/. Parsing and wiring only; the work is in the modules.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace unidle::cli {

struct Subcommand {
  std::string name;
  std::string summary;   // one line
  std::string examples;  // shown under --help
  /// Adds options to `app` and returns the function that runs after parsing; its result is the exit code.
  std::function<int()> (*setup)(CLI::App& app);
};

/// All subcommands, one per file in commands/, sorted by file name. Generated at configure time.
const std::vector<const Subcommand*>& all_commands();

/// Parses and runs; never throws. Returns 2 for wrong usage, otherwise Error::exit_code() or the command's own code.
int run_program(int argc, char** argv);

}  // namespace unidle::cli
