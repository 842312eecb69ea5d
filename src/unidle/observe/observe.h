// Runs a command under observation: child, signals, telemetry, ring collector, record.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "unidle/base/process.h"
#include "unidle/observe/sandbox.h"
#include "unidle/record/record.h"

namespace unidle::observe {

struct Options {
  std::vector<std::string> argv;
  std::filesystem::path record;                    // folder to create; if another run has it, a folder beside it
  std::filesystem::path folder;                    // working folder of the command; empty: the current one
  std::map<std::string, std::string> environment;  // added for the command
  bool capture = true;                             // keep the end of the output while passing it on
  bool forward_signals = true;                     // pass INT, TERM, HUP, QUIT, USR1, USR2 to the command
  bool python = true;                              // put the shim on the command's PYTHONPATH
  std::vector<record::Setting> configured;         // settings from configuration files, for the record
  nlohmann::json run_options;                      // of `unidle run`, to start such a run again; for the record
  bool quiet = false;                              // the command's output goes only to the record's tail (trials)
  std::optional<double> timeout_s;
  std::optional<SandboxOptions> sandbox;  // what the command may change (trials)
  /// Called once the command runs, with the folder of its record; not called without a record.
  std::function<void(const std::filesystem::path&)> recording;
  /// Called once the command has ended and everything else is written; may add to the record.
  std::function<void(record::Writer&, const std::filesystem::path&)> before_close;
  std::stop_token stop;  // ends the command
};

struct Result {
  ExitStatus status;
  std::filesystem::path record;
  bool timed_out = false;
  std::string out_tail;  // with `quiet`: the end of standard output (the last 256 KiB), for reading a trial's summary
  std::string err_tail;
};

/// Runs the command to its end and records it. Problems of unidle itself (no record can be written, a device that does
/// not answer) never stop the command: they are logged, stored in the record's problems, and the command continues.
/// Throws kInput when the command itself cannot be started.
Result run(const Options& options);

}  // namespace unidle::observe
