// Starting the command so that it cannot tell the difference.
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
  std::map<std::string, std::string> environment;  // added to ours
  std::string folder;                              // to start in; empty: ours
  bool own_group = false;  // leads a group of its own, has no input nor files that we have open, and dies with us
  const Sandbox* sandbox = nullptr;  // entered before all else
};

/// The pid. stdin, limits, mask and dispositions are those that we were started with. Call before there are
/// threads. Throws kInput (subject: argv[0]) when the program cannot be started, kChild when fork fails.
pid_t spawn(const SpawnOptions& options, const OutputStreams& streams, const SignalForwarder& signals);

}  // namespace unidle::observe
