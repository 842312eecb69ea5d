// Everything that rules may look at. Whoever fills it (a record, foreign logs) is not known to the rules.
// Every field that may be missing is optional: missing is not zero.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose {

/// A knob as configured and as it is in the live program.
struct SettingPair {
  std::optional<std::string> configured;
  std::string configured_at;  // file:line
  std::optional<std::string> effective;
};

struct Signals {
  // The run
  Outcome outcome = Outcome::kUnknown;
  double wall_s = 0;
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  std::string output_tail;  // end of stdout and stderr
  /// The last exception that the program's instrumentation saw, and the steps that began after it.
  std::optional<std::string> exception;
  std::optional<std::int64_t> steps_after_exception;

  // Time
  PhaseTimes time;
  std::optional<StepShares> step;     // of the steps after warm-up
  std::optional<std::int64_t> steps;  // how many were seen
  std::optional<double> step_s;       // mean duration after warm-up
  std::optional<double> samples_per_s;
  std::optional<double> syncs_per_step;
  std::optional<std::int64_t> validations;
  std::optional<std::int64_t> checkpoints;
  std::optional<std::int64_t> batch_samples;  // micro-batch size as seen

  // Loader
  std::optional<double> sample_s;     // mean time to produce one sample, one thread
  std::optional<double> loader_busy;  // 0..1, of the time of all loader threads; absent without workers

  std::optional<double> epochs;  // passes over the data so far

  // Device and host
  std::string device_kind = "unknown";
  std::optional<double> device_busy;
  std::string device_busy_how;
  std::optional<double> gpu_memory_used;      // 0..1
  std::optional<int> gpus;                    // visible on this machine; 0 is measured zero
  std::optional<std::string> gpu_capability;  // "9.0"
  std::optional<double> cpus_allowed;         // affinity and quota together
  std::optional<double> cpus_used;            // mean over training
  std::optional<bool> cpu_bf16;               // matrix or vector units for bf16

  // Model
  std::optional<bool> model_has_convolutions;
  std::optional<bool> model_has_depthwise;  // convolutions with as many groups as channels
  std::optional<std::int64_t> model_parameters;

  // Settings by knob name
  std::map<std::string, SettingPair> settings;
  /// Keys of the configuration that the program did not read, with file:line.
  std::vector<std::pair<std::string, std::string>> unread_keys;

  std::optional<std::string> effective(const std::string& knob) const;
};

}  // namespace unidle::diagnose
