// Facts that several rules share, computed once from the signals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unidle/diagnose/policy.h"
#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"

namespace unidle::diagnose {

/// Plain data, valid as long as the signals from which it was made. A missing signal gives a missing fact.
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

  // Shares of the wall time spent in these parts of the steps. Absent when too few steps were seen; all but `input` are
  // also absent when a log states only the wait for input. On a GPU whose busy time is known, and unless `keeps_up`,
  // `input` and `transfer` are at most `idle_between`, and `optimizer` at most `idle`: what the host does while the
  // device computes costs nothing.
  std::optional<double> input;
  std::optional<double> transfer;
  std::optional<double> sync;  // not limited by the device's idle time
  std::optional<double> compute;
  std::optional<double> optimizer;

  /// Parts of `input`: waiting for workers to start, and the rest. Without data about starts, all of it is steady.
  double respawn = 0;
  std::optional<double> steady_input;
  double validation_wait = 0;  // share of the wall time that validation waits for samples, where training does, too

  // Seconds per mean step.
  std::optional<double> input_s;
  std::optional<double> rest_s;  // the step without the avoidable wait for input

  std::optional<std::int64_t> workers;  // of the training loader
  std::optional<double> work_s;         // loader work per step on a single thread that always has a CPU
  std::optional<double> work_on_cpu;  // 0..1: share of that work spent on a CPU rather than waiting for something else
  /// 0..1: share of the loader's time in which its threads stood ready for a CPU. Where that was not measured and the
  /// CPUs are full: all the time that they were not on one.
  std::optional<double> work_delayed;
  std::optional<double> epochs;  // passes over the data

  std::optional<double> cpus;         // available to the run
  std::optional<double> cpus_taken;   // part of `cpus` that other processes used while threads of the run stood ready
  bool crowded_out = false;           // others took so much that what was measured is not the run's own
  std::optional<double> cpu_threads;  // used by compute on a CPU device: the effective cpu.threads

  /// Share of the wall time that the device idles while training. GPU only; absent when its busy time is not known.
  std::optional<double> idle;
  /// The part of `idle` between a step's work and the next first forward pass, where a loop waits for input and copies;
  /// all of `idle` when this is not known. The rest are gaps within the step's work.
  std::optional<double> idle_between;
  /// True when `input`, `transfer` or `optimizer` had to be limited to the device's idle time.
  bool hidden_by_device = false;
  /// True when the device's queue runs empty before the host submits more, and the duration of kernels is not known:
  /// the device's busy share is then only an upper limit.
  bool keeps_up = false;
  /// True when the device is still working on its queue when the host submits more. Launching then costs nothing.
  bool behind = false;
  /// Share of multiprocessors in use while any kernel runs, 0..1. GPU only; absent when hardware counters were not
  /// read.
  std::optional<double> units_in_use;
  /// Share of the wall time spent computing. On a GPU whose busy time is known, and unless `keeps_up`: the time that
  /// the device is busy while training, whatever the host does meanwhile, at most the training time without copies in
  /// the compute stream. With `keeps_up`: absent. Otherwise: forward and backward pass. Absent for the reason in
  /// `no_computing`.
  std::optional<double> computing;
  std::string no_computing;

  /// Share of the wall time that the device idles while the loop neither waits for input nor copies. GPU only.
  std::optional<double> starved;
  /// The part of `starved` that host waits do not explain: the host is busy launching. Zero when the device is
  /// `behind`.
  std::optional<double> launching;

  /// Why step shares are missing, or all but `input`: the signal that a rule names when it abstains.
  std::string no_steps;

  /// Formats a message in the language of the answer.
  template <typename... Args>
  std::string say(fmt::format_string<Args...> english, Args&&... args) const {
    return unidle::translate(language, english, std::forward<Args>(args)...);
  }
};

/// True when too few training steps were seen to say what they wait for.
bool too_few_steps(const Signals& signals, const Policy& policy);

Context make_context(const Signals& signals, const Policy& policy, Language language = Language::kEnglish);

/// Returns `policy` for judging this run: a start-up below startup_long_s is subtracted from the wall time with which
/// shares are compared, so that a short trial and a longer run name the same causes. At least a tenth of the run
/// counts.
Policy without_start_up(Policy policy, const Signals& signals);

/// 1 / (1 - share): the most that removing a cause of that share can gain. REQUIRES: 0 <= share <= 1; capped at 1000.
double amdahl(double share);

/// The bound for the whole run when each step shrinks from `step_s` to `best_s` and everything else stays.
double bound_of_run(const Context& context, double step_s, double best_s);

/// The CPUs that other processes leave to the run; at least those that it used, and what one ready thread gets.
/// REQUIRES: context.cpus.
double usable_cpus(const Context& context);

/// As many threads as other processes leave CPUs, for one process that computes on CPUs with more; otherwise absent.
/// Beside one busy process on two CPUs, one thread was 1.3, 1.3, 2.0 and 4.7 times as fast as two (a large and a small
/// MLP, a CNN and a transformer, torch 2.11).
std::optional<std::int64_t> threads_beside_others(const Context& context, const Policy& policy);

/// The shortest possible step, in seconds, when loader work overlaps with compute on so many CPUs. It is never shorter
/// than the rest of the step; on a CPU device, where loader and compute share the CPUs, never shorter than all CPU work
/// of the step divided by the CPUs. `loader_cpu_s`: CPU seconds of loader work per step. Absent when facts are missing.
std::optional<double> overlapped_step_s(const Context& context, double loader_cpu_s, double cpus);
/// The same on the usable CPUs.
std::optional<double> overlapped_step_s(const Context& context, double loader_cpu_s);

/// The number of loader processes that `cpus` CPUs support: one per CPU, and proportionally more, up to
/// Policy::workers_per_cpu, when samples mostly wait for a disk or a network.
double workers_on(const Context& context, double cpus, const Policy& policy);

/// kCritical, kWarning or kInfo by share.
Severity severity_of(double share, const Policy& policy);

}  // namespace unidle::diagnose
