// Facts that several rules share, computed once from the signals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unidle/diagnose/policy.h"
#include "unidle/diagnose/signals.h"

namespace unidle::diagnose {

/// Plain data, valid as long as the signals it was made from. A missing signal gives a missing fact.
struct Context {
  explicit Context(const Signals& observed) : signals(observed) {}

  const Signals& signals;

  bool on_cpu = false;  // the device that trains is the CPU
  bool on_gpu = false;

  // Shares of the wall time; absent when the wall time is unknown.
  std::optional<double> startup;
  std::optional<double> train;
  std::optional<double> validate;
  std::optional<double> checkpoint;

  // Shares of the wall time that the steps spend so; absent when too few steps were seen.
  std::optional<double> input;
  std::optional<double> transfer;
  std::optional<double> sync;
  std::optional<double> compute;

  // Seconds of one mean step.
  std::optional<double> input_s;
  std::optional<double> rest_s;  // all of the step but the wait for input

  std::optional<double> cpus;         // that the run may use
  std::optional<double> cpu_threads;  // that compute uses on a CPU device: the effective cpu.threads

  /// Why there are no step shares, for a rule that abstains.
  std::string no_steps;
};

Context make_context(const Signals& signals, const Policy& policy);

/// 1 / (1 - share): what removing a cause of that share could give at most. REQUIRES: 0 <= share <= 1; capped at 1000.
double amdahl(double share);

/// The bound for the whole run when each step shrinks from `step_s` to `best_s` and all else stays.
double bound_of_run(const Context& context, double step_s, double best_s);

/// How short a step can get when loader work runs beside compute instead of before it, in seconds. The step never gets
/// shorter than its own rest; on a CPU device, never shorter than all CPU work of the step over the CPUs: loader and
/// compute share them. `loader_cpu_s`: CPU seconds of loader work a step. Absent when facts are missing.
std::optional<double> overlapped_step_s(const Context& context, double loader_cpu_s);

/// kCritical, kWarning or kInfo by share.
Severity severity_of(double share, const Policy& policy);

/// "true" for true/True/yes/on, "false" for false/no/off/none, numbers without trailing zeros, short names of number
/// formats ("bf16"), otherwise lower case.
std::string canonical(std::string_view value);
/// True when a configured value is what the live program has, whatever way the two are spelled.
bool in_effect(std::string_view configured, std::string_view effective);
/// A setting's text as JSON: bool, integer, number or string.
nlohmann::json setting_value(std::string_view text);

}  // namespace unidle::diagnose
