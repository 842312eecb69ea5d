// Small helpers with which rules build findings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/context.h"
#include "unidle/diagnose/detail/hot_functions.h"
#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose::detail {

/// A finding with that share of the wall time, its severity and its Amdahl bound.
Finding of_share(double share, const Policy& policy);

/// A fix from the live program's value of `knob` (null when unknown). `how` is translated where the catalogue has it.
knobs::Change make_fix(const Context& context, std::string knob, std::optional<knobs::Value> to, std::string_view how);
/// A fix that no setting makes: the user edits the program.
knobs::Change code_fix(const Context& context, std::string knob, std::string_view how);

/// cache.features: in memory, or on disk when the program recreates its data set, which would discard an in-memory
/// cache, and for workloads whose features the feature cache keeps across runs.
knobs::Change keep_samples_fix(const Context& context, std::string_view how);

/// A hint that the scheduler ended an earlier attempt of the run, for its time limit or otherwise, and a later one
/// continued training; nothing if there was none.
std::optional<Finding> earlier_attempt(const Context& context, bool time_limit);

/// Launching the step as one graph: torch.compile in Python, a captured step in our engine.
knobs::Change one_launch_fix(const Context& context);

/// Where the configuration sets `knob`; nothing if it does not.
std::optional<std::string> where_set(const Context& context, const std::string& knob);
/// Where the configuration sets `knob`; if it does not, where the training loader is made.
std::optional<std::string> where_loader(const Context& context, const std::string& knob);
/// `place`, or nothing when it is empty.
std::optional<std::string> place(const std::string& place);

/// Of a number of bytes from a note, which may be anything: below zero it is nothing.
std::string format_noted_bytes(double bytes);
/// Where samples are made; when that is in a package, which users do not edit, the line that makes the loader.
std::optional<std::string> place_of_samples(const Signals& signals);

/// The effective value as an integer; nothing when unknown or not an integer.
std::optional<std::int64_t> effective_int(const Context& context, const std::string& knob);
/// The effective value as a switch: on for everything except false, off, 0 and fp32.
std::optional<bool> effective_on(const Context& context, const std::string& knob);

/// Seconds and number of validations without dry runs before the first step and tests after the last one.
double validated_between_steps_s(const Signals& signals);
std::int64_t validations_between_steps(const Signals& signals);

/// The factor by which the validation interval must grow for it to take `wanted` of the loop; smaller when a run of
/// this length would not validate any more. 1 when nothing can be said.
double rarer_validation_by(const Signals& signals, double wanted);

/// The share of making batches that is the program's own collate function; zero if that is torch's or not measured.
double collate_share(const Signals& signals);
/// Adds the collate function if it takes most of that time.
void add_collate(const Context& context, const Policy& policy, Finding& finding);

/// Adds what the threads of our own loader spend their time on, the limiting stage first, when they report it.
void add_stages(const Context& context, Finding& finding);

/// Adds the source of unidle.data that can replace the program's data set, when one was found. It becomes a fix when a
/// person only has to review the lines.
void add_source(const Context& context, Finding& finding);

/// False when samples cannot be kept for later epochs: they are a stream, or differ each epoch.
bool samples_can_be_kept(const Context& context);
/// The part of the work on samples that can be kept. REQUIRES: samples_can_be_kept.
double part_to_keep(const Signals& signals);
/// True when samples made again differed. Until then, true when the data set's code draws random numbers.
bool samples_differ(const Signals& signals);

/// The number of workers that hide `work_s` of loader work per step behind the rest of the step, as far as the CPUs
/// allow; one CPU is left for the training thread.
std::int64_t workers_that_hide(const Context& context, double work_s, const Policy& policy);

/// Idle CPUs that this run may use; nothing when not measured.
std::optional<double> free_cpus(const Context& context);
/// True when the CPUs of this run are in use, by whichever process; nothing when not measured.
std::optional<bool> cpus_full(const Context& context, const Policy& policy);
/// True when the run's threads keep `cpus` CPUs busy, or would if other processes did not take them. REQUIRES: the CPUs
/// that it used were measured.
bool run_fills(const Context& context, double cpus, const Policy& policy);
/// "the run uses 1.7 of its 2 CPUs", with what other processes use when it matters. REQUIRES: as above.
std::string cpu_use_in_words(const Context& context, const Policy& policy);

/// Families of calls that make the host wait.
enum class Waits { kReads, kSynchronize, kFlush };
struct WaitFacts {
  double per_step = 0;
  double seconds = 0;
  double of_all = 1;   // share of the time of all waits but kFlush
  double outside = 0;  // share of the calls outside of steps
  const SyncCall* top = nullptr;
};
/// Nothing when calls were not watched or no step was seen.
std::optional<WaitFacts> waits_of(const Signals& signals, Waits family);
/// The share of the wall time lost by host calls that take the share `calls`, of which at most `outside` lies outside
/// of steps, where nothing is known of the device. Returns `calls` when the GPU's busy share was not measured.
double lost_by_calls(const Context& context, double calls, double outside);
/// The share of the wall time lost by host waits that take the share `waits`: waiting while the device computes costs
/// nothing; only the device's idle time can be won back. Nothing when the GPU's busy share was not measured.
std::optional<double> lost_by_waiting(const Context& context, double waits);

/// "every 40 steps a step takes 600 ms longer than the usual 20 ms, 10 times in all".
std::string stalls_in_words(const Context& context, const account::Stalls& stalls);

}  // namespace unidle::diagnose::detail
