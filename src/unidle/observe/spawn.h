// Starts the command so that it cannot notice the observation.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "unidle/observe/output.h"
#include "unidle/observe/sandbox.h"
#include "unidle/observe/signals.h"

namespace unidle::observe {

struct SpawnOptions {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // added to the inherited variables
  std::string folder;                              // working folder; empty: the current one
  bool own_group = false;            // own group, no input, no inherited files, and killed when unidle dies
  const Sandbox* sandbox = nullptr;  // entered first
};

/// Returns the pid. stdin, limits, mask and dispositions are those that unidle was started with. Call before any thread
/// exists. Throws kInput (subject: argv[0]) when the program cannot be started, kChild when fork fails.
pid_t spawn(const SpawnOptions& options, const OutputStreams& streams, const SignalForwarder& signals);

}  // namespace unidle::observe
