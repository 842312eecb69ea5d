// Prints messages of the argument parser, for both programs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <sstream>

#include "unidle/base/terminal.h"

namespace unidle::cli {

/// Prints the message without control sequences, since it quotes the user's words. Returns the exit code: 0 for help
/// and version, otherwise 2.
inline int print_parser_message(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app.exit(error, out, err);
  write_to(stdout, out.str());
  write_to(stderr, err.str());
  return code == 0 ? 0 : 2;
}

}  // namespace unidle::cli
