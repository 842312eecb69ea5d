// Facts that several rules share, computed once from the signals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unidle/diagnose/policy.h"
#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"

namespace unidle::diagnose {

/// Plain data, valid as long as the signals it was made from. A missing signal gives a missing fact.
struct Context {
  explicit Context(const Signals& observed, Language in = Language::kEnglish) : signals(observed), language(in) {}

  const Signals& signals;
  Language language;

  bool on_cpu = false;  // the device that trains is the CPU
  bool on_gpu = false;

  // Shares of the wall time; absent when the wall time is unknown.
  std::optional<double> startup;
  std::optional<double> train;
  std::optional<double> validate;
  std::optional<double> checkpoint;

  // Shares of the wall time that the steps spend so; absent when too few steps were seen, and all but `input` where a
  // log states nothing else. On a GPU `input` and
  // `transfer` are no more than `idle_between`, and `optimizer` no more than `idle`: what the host does while the
  // device computes costs nothing.
  std::optional<double> input;
  std::optional<double> transfer;
  std::optional<double> sync;  // all of it, however much the device does meanwhile
  std::optional<double> compute;
  std::optional<double> optimizer;

  /// Of `input`: waiting for workers to start, and the rest. Without a word about starts all is steady.
  double respawn = 0;
  std::optional<double> steady_input;

  // Seconds of one mean step.
  std::optional<double> input_s;
  std::optional<double> rest_s;  // the step without the wait for input that can be won back

  std::optional<std::int64_t> workers;  // of the training loader
  std::optional<double> work_s;         // loader work of one step, on one thread
  std::optional<double> work_on_cpu;    // 0..1 of that: not waiting for anything
  std::optional<double> passes;         // over the data

  std::optional<double> cpus;         // that the run may use
  std::optional<double> cpu_threads;  // that compute uses on a CPU device: the effective cpu.threads

  /// Share of the wall time that the device idles while training. On a GPU only; absent where its time is not known.
  std::optional<double> idle;
  /// Of it, what lies between a step's work and the next first forward pass, where a loop waits for input and copies;
  /// all of it where that is not known. The rest are gaps within the step's work.
  std::optional<double> idle_between;
  /// The host spends more than these in one of the three above.
  bool hidden_by_device = false;
  /// The device does all that is queued before the host comes with more, and nothing tells how long its kernels take:
  /// how busy it is, is known as an upper limit only.
  bool keeps_up = false;
  /// The other way round: when the host comes with more, the device is still at what was queued. Launching costs
  /// nothing then.
  bool behind = false;
  /// Multiprocessors with work on them in the time in which some kernel runs, 0..1. On a GPU only; absent where the
  /// hardware's counters were not read.
  std::optional<double> units_in_use;
  /// Share of the wall time that is computing: on a GPU the time that the device is busy while training, wherever the
  /// host spends it, less what copies in the stream that computes take; on a CPU forward and backward pass. Absent for
  /// the reason `no_computing`.
  std::optional<double> computing;
  std::string no_computing;

  /// The device's idle time while the loop neither waits for input nor copies, as a share of the wall time: what the
  /// host leaves unused. On a GPU only.
  std::optional<double> starved;
  /// Of it, what host waits do not explain either: the host is busy launching. Nothing of it where the device is
  /// behind.
  std::optional<double> launching;

  /// Why there are no step shares, or no others than `input`, for a rule that abstains.
  std::string no_steps;

  /// A message in the language of the answer.
  template <typename... Args>
  std::string say(fmt::format_string<Args...> english, Args&&... args) const {
    return unidle::translate(language, english, std::forward<Args>(args)...);
  }
};

Context make_context(const Signals& signals, const Policy& policy, Language language = Language::kEnglish);

/// `policy` for rules to judge this run by: a start-up below startup_long_s is left out of the wall time that shares
/// are compared with, because a longer run spreads it out and a short trial must name the same causes. At least a tenth
/// of the run counts.
Policy without_start_up(Policy policy, const Signals& signals);

/// 1 / (1 - share): what removing a cause of that share could give at most. REQUIRES: 0 <= share <= 1; capped at 1000.
double amdahl(double share);

/// The bound for the whole run when each step shrinks from `step_s` to `best_s` and all else stays.
double bound_of_run(const Context& context, double step_s, double best_s);

/// How short a step can get when loader work runs beside compute instead of before it, in seconds. The step never gets
/// shorter than its own rest; on a CPU device, never shorter than all CPU work of the step over the CPUs: loader and
/// compute share them. `loader_cpu_s`: CPU seconds of loader work a step. Absent when facts are missing.
std::optional<double> overlapped_step_s(const Context& context, double loader_cpu_s);

/// How many loader processes `cpus` CPUs carry: as many, or, where samples mostly wait (for a disk, a network), more in
/// proportion, up to four for each CPU.
double workers_on(const Context& context, double cpus);

/// kCritical, kWarning or kInfo by share.
Severity severity_of(double share, const Policy& policy);

}  // namespace unidle::diagnose
