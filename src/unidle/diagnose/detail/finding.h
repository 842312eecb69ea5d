// Small helpers that rules build findings with.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "unidle/diagnose/context.h"
#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose::detail {

/// A finding with that share of the wall time, its severity and its Amdahl bound.
Finding of_share(double share, const Policy& policy);

/// A fix from the live program's value of `knob` (null when unknown). `how` is translated where the catalogue has it.
Fix make_fix(const Context& context, std::string knob, nlohmann::json to, std::string_view how);

/// cache.features: in memory; on disk where the program makes its data set anew, since what memory keeps goes with it,
/// and for a workload whose features the feature cache keeps for later runs.
Fix keep_samples_fix(const Context& context, std::string_view how);

/// A hint that the scheduler ended an earlier attempt of the run, by its time limit or otherwise, after which training
/// went on; nothing without one.
std::optional<Finding> earlier_attempt(const Context& context, bool time_limit);

/// The step launched as one graph: torch.compile in Python, a captured step in our engine.
Fix one_launch_fix(const Context& context);

/// Where the configuration sets `knob`.
std::optional<std::string> where_set(const Context& context, const std::string& knob);
/// The same; where it does not, the place that makes the training loader.
std::optional<std::string> where_loader(const Context& context, const std::string& knob);
/// `place`, unless it is empty.
std::optional<std::string> place(const std::string& place);
/// Whether "file:line" is of an installed package, which nobody changes: torch's TensorDataset, say.
bool is_of_a_package(std::string_view place);
/// Where samples are made; where that is of a package, the line that makes the loader.
std::optional<std::string> place_of_samples(const Signals& signals);

/// The effective value as a whole number; nothing when unknown or not one.
std::optional<std::int64_t> effective_int(const Context& context, const std::string& knob);
/// The effective value as a switch: on for everything but false, off, 0 and fp32.
std::optional<bool> effective_on(const Context& context, const std::string& knob);

/// The function that most looks at something found, with its share of them.
struct HotFunction {
  std::string function;
  std::string where;  // its hottest line
  double share = 0;
  std::int64_t looks = 0;  // of which it has that share
};
/// Of the lines that `counts` is true for, and of sample work.
std::optional<HotFunction> hot_function(const Signals& signals, const std::function<bool(const HotLine&)>& counts);
std::optional<HotFunction> hot_sample_function(const Signals& signals);

/// The same where its results could be kept although the samples differ.
std::optional<HotFunction> kept_within(const Signals& signals);

/// The same where its results could be kept for later runs as well, by a line above it; `where` is the line of its
/// definition.
std::optional<HotFunction> cacheable_within(const Signals& signals);

/// Adds what the threads of our own loader spend their time on, the limiting stage first, where they told.
void add_stages(const Context& context, Finding& finding);

/// Adds which source of unidle.data gives what the program's data set gives, where that was seen; as a fix where
/// nothing is left to a person but to review the lines.
void add_source(const Context& context, Finding& finding);

/// False where nothing of the samples could be kept for later epochs: they are a stream, or differ each time.
bool samples_can_be_kept(const Context& context);

/// Workers that hide `work_s` of the loader's work a step behind the rest of the step, as far as the CPUs carry them,
/// one being left for the training thread.
std::int64_t workers_that_hide(const Context& context, double work_s);

/// CPUs that this run may use and nobody does; nothing when that was not measured.
std::optional<double> free_cpus(const Context& context);
/// True when the CPUs of this run are in use; nothing when that was not measured.
std::optional<bool> cpus_full(const Context& context, const Policy& policy);

/// Calls that make the host wait, of one family.
enum class Waits { kReads, kSynchronize, kFlush };
struct WaitFacts {
  double per_step = 0;
  double seconds = 0;
  double of_all = 1;   // share of the time of all waits but kFlush
  double outside = 0;  // share of the calls that lie outside of the steps
  const SyncCall* top = nullptr;
};
/// Nothing when calls were not watched or no step was seen.
std::optional<WaitFacts> waits_of(const Signals& signals, Waits family);
/// The share of the wall time that calls of the host cost, `calls` in all, of which at most `outside` lies outside of
/// the steps, where nothing is known of the device. `calls` itself where how busy a GPU is was not measured.
double lost_by_calls(const Context& context, double calls, double outside);
/// The share of the wall time that `waits` (a share too) costs: a host that waits while the device computes loses
/// nothing, only the device's idle time can be won back. Nothing when how busy a GPU is was not measured.
std::optional<double> lost_by_waiting(const Context& context, double waits);

}  // namespace unidle::diagnose::detail
