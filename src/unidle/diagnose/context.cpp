#include "unidle/diagnose/context.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "unidle/base/numbers.h"
#include "unidle/diagnose/detail/copies.h"
#include "unidle/diagnose/detail/finding.h"

namespace unidle::diagnose {

namespace {

constexpr double kMostShare = 0.999;

/// What the loader takes per step on a single thread, in seconds.
std::optional<double> loader_time_s(const Context& context) {
  const Signals& signals = context.signals;
  if (context.workers == 0) {
    return context.input_s;  // the training thread makes the samples: the wait is the work
  }
  if (signals.samples && signals.samples->count > 0 && signals.batch_samples) {
    const double each = (signals.samples->total_s + signals.samples->collate_s.value_or(0)) /
                        static_cast<double>(signals.samples->count);
    return each * static_cast<double>(*signals.batch_samples) * signals.micro_batches.value_or(1);
  }
  if (signals.loader_busy && context.workers && signals.step_s) {
    return *signals.loader_busy * static_cast<double>(*context.workers) * *signals.step_s;
  }
  return std::nullopt;
}

void add_waits_of_samples(Context& context, const Policy& policy) {
  if (!context.signals.samples || !context.signals.samples->cpu_s || !context.signals.samples->wait_s) {
    return;
  }
  const SampleFacts& samples = *context.signals.samples;
  const double cpu_s = *samples.cpu_s;
  const double wait_s = *samples.wait_s;
  if (cpu_s + wait_s <= 0) {
    return;
  }
  if (samples.run_delay_s || detail::cpus_full(context, policy).value_or(false)) {
    context.work_delayed = std::min(wait_s, samples.run_delay_s.value_or(wait_s)) / (cpu_s + wait_s);
  }
  const double work_s = (cpu_s + wait_s) * (1 - context.work_delayed.value_or(0));
  context.work_on_cpu = work_s > 0 ? std::min(1.0, cpu_s / work_s) : 1;
}

/// Validation usually has the same data set and workers: what training gains there, it gains too.
double wait_of_validation(const Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (signals.wall_s <= 0 || context.input.value_or(0) < policy.warning_share) {
    return 0;
  }
  return std::min(signals.validation_wait_s.value_or(0), signals.time.validate) / signals.wall_s;
}

void add_loader_facts(Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (signals.loader && signals.loader->workers) {
    context.workers = signals.loader->workers;
  } else if (const auto text = signals.effective("loader.workers")) {
    if (const auto value = parse_number<double>(*text); value && *value >= 0) {
      context.workers = std::llround(*value);
    }
  }
  if (signals.loader && signals.loader->start_wait_s && signals.wall_s > 0 && context.input) {
    context.respawn = std::clamp(*signals.loader->start_wait_s / signals.wall_s, 0.0, *context.input);
  }
  if (context.input) {
    context.steady_input = *context.input - context.respawn;
  }
  context.validation_wait = wait_of_validation(context, policy);
  add_waits_of_samples(context, policy);
  if (const auto time_s = loader_time_s(context)) {
    context.work_s = *time_s * (1 - context.work_delayed.value_or(0));
  }
  context.epochs = signals.epochs;
}

void add_step_facts(Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (!signals.step || !context.train) {
    context.no_steps = context.say("training steps (none were seen)");
    return;
  }
  if (too_few_steps(signals, policy)) {
    context.no_steps =
        context.say("enough training steps ({} seen, {} needed)", signals.steps.value_or(0), policy.min_steps);
    return;
  }
  const StepShares& step = *signals.step;
  context.input = step.input * *context.train;
  if (signals.step_s) {
    context.input_s = step.input * *signals.step_s;
    context.rest_s = *signals.step_s - *context.input_s;
  }
  if (!signals.input_stated.empty()) {
    context.no_steps = context.say("what a step does besides waiting for input (the log states only the wait)");
    return;
  }
  context.transfer = step.transfer * *context.train;
  context.sync = step.sync * *context.train;
  context.compute = step.compute * *context.train;
  context.optimizer = step.optimizer * *context.train;
}

/// Limits host time to the device's idle time: what the host does while the device computes costs nothing. A device
/// that keeps up with the host is idle meanwhile.
void bound_by_idle(Context& context) {
  if (context.keeps_up) {
    return;
  }
  const auto bound = [&](std::optional<double>& share, double most) {
    if (share) {
      context.hidden_by_device = context.hidden_by_device || *share > most;
      share = std::min(*share, most);
    }
  };
  bound(context.input, *context.idle_between);
  bound(context.transfer, *context.idle_between);
  bound(context.optimizer, *context.idle);
  if (context.rest_s && *context.train > 0) {
    context.rest_s = *context.signals.step_s * (1 - *context.input / *context.train);
  }
}

/// With several micro-batches, all but the first are waited for and copied within the device's span of the step.
double idle_between(const Context& context) {
  const Signals& signals = context.signals;
  const bool one_batch = signals.micro_batches.value_or(1) < 1.5;
  const auto worked = signals.share_of_step(signals.device_span_s);
  return one_batch && worked ? std::clamp((1 - *worked) * *context.train, 0.0, *context.idle) : *context.idle;
}

/// Idle time that a profiler's window attributes to something other than launching.
double known_idle(const Signals& signals) {
  const auto& timeline = signals.timeline;
  return timeline ? timeline->compile + timeline->allocator + timeline->host + timeline->queued : 0;
}

void add_device_facts(Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  context.computing = context.compute;
  context.no_computing = context.no_steps;
  if (!context.on_gpu || !signals.device_busy || !context.input) {
    return;
  }
  // NVML counts time in which any kernel ran. A device with work on all its units is not idle.
  const double most = std::min(*signals.device_busy, signals.share_of_step(signals.device_step_s).value_or(1));
  const double busy = std::max(most, signals.sm_activity.value_or(0));
  context.idle = std::max(0.0, (1 - busy) * *context.train);
  context.idle_between = idle_between(context);
  const bool full = signals.sm_activity.value_or(0) >= policy.units_full;
  context.keeps_up = signals.device_kept_up.value_or(0) >= policy.mostly && !signals.kernel_time_known && !full;
  context.behind = signals.device_kept_up.value_or(1) < policy.mostly;
  if (context.keeps_up) {
    context.computing.reset();
    context.no_computing = context.say(
        "how long kernels run (the device keeps up with the host: NVML and events count the gaps between kernels too)");
  } else {
    // NVML also counts copies. While the compute stream copies, it computes nothing.
    const double copying = detail::compute_stream_copy_share(context, policy).value_or(0);
    context.computing = std::min(busy * *context.train, *context.train - copying);
  }
  bound_by_idle(context);
  if (!context.transfer) {
    return;
  }
  double waits = *context.input + *context.transfer;
  if (!context.keeps_up) {
    waits = std::min(waits, *context.idle_between);
  }
  context.starved = std::max(0.0, *context.idle - waits);
  context.launching = context.behind ? 0 : std::max(0.0, *context.starved - *context.sync - known_idle(signals));
}

void add_cpu_facts(Context& context, const Policy& policy) {
  const Signals& signals = context.signals;
  if (signals.cpus_allowed && *signals.cpus_allowed > 0) {
    context.cpus = signals.cpus_allowed;
  }
  if (const auto threads = signals.effective("cpu.threads")) {
    const auto value = parse_number<double>(*threads);
    if (value && *value >= 1) {
      context.cpu_threads = value;
    }
  }
  if (!context.cpus || !signals.cpus_used || !signals.host_cpus_used || !signals.cpus_online || !signals.run_delay) {
    return;
  }
  const double own = *signals.cpus_used;
  const double idle = std::max(0.0, *signals.cpus_online - *signals.host_cpus_used);
  const double out_of_reach = std::max(0.0, *signals.cpus_online - *context.cpus);
  const double others = std::max(0.0, *signals.host_cpus_used - own - out_of_reach);
  // A thread of the run may also stand ready while another one of the run has the CPU, or before it finds an idle one.
  context.cpus_taken = std::clamp(*signals.run_delay - idle, 0.0, others);
  context.crowded_out = *context.cpus_taken >= policy.crowded_out * (own + *context.cpus_taken) &&
                        *context.cpus_taken >= policy.others_cpus;
}

/// Gaps between kernels count as busy time here, as in NVML's utilisation.
std::optional<double> units_in_use(const Signals& signals) {
  if (!signals.sm_activity) {
    return std::nullopt;
  }
  const double running = std::max(signals.utilisation.value_or(1), *signals.sm_activity);
  return running > 0 ? std::optional(*signals.sm_activity / running) : std::nullopt;
}

/// The part of a CPU that a thread of the run gets when it is ready: other processes may run at a lower priority.
double share_of_ready_thread(const Context& context) {
  const double own = context.signals.cpus_used.value_or(0);
  return context.cpus_taken && own > 0 ? own / (own + *context.cpus_taken) : 0;
}

}  // namespace

bool too_few_steps(const Signals& signals, const Policy& policy) {
  constexpr std::int64_t kFewest = 3;
  const std::int64_t seen = signals.steps.value_or(0);
  const bool long_ones = seen >= kFewest && signals.step_s.value_or(0) >= policy.long_step_s;
  return seen < policy.min_steps && !long_ones;
}

Context make_context(const Signals& signals, const Policy& policy, Language language) {
  Context context(signals, language);
  context.on_cpu = signals.device_kind == "cpu";
  context.on_gpu = signals.device_kind == "cuda" || signals.device_kind == "rocm";
  if (signals.wall_s > 0) {
    const auto share = [&](double seconds) { return std::clamp(seconds / signals.wall_s, 0.0, 1.0); };
    context.startup = share(signals.time.startup);
    context.train = share(signals.time.train);
    context.validate = share(signals.time.validate);
    context.checkpoint = share(signals.time.checkpoint);
  }
  add_cpu_facts(context, policy);
  add_step_facts(context, policy);
  add_device_facts(context, policy);
  context.units_in_use = context.on_gpu ? units_in_use(signals) : std::nullopt;
  add_loader_facts(context, policy);
  return context;
}

Policy without_start_up(Policy policy, const Signals& signals) {
  constexpr double kLeast = 0.1;
  if (signals.wall_s <= 0 || signals.time.startup >= policy.startup_long_s) {
    return policy;
  }
  const double rest = std::clamp(1 - signals.time.startup / signals.wall_s, kLeast, 1.0);
  // Not what a longer run spreads out as well, such as the work after training.
  for (double Policy::*share : {&Policy::warning_share, &Policy::checkpoint_share, &Policy::flush_share,
                                &Policy::launch_share, &Policy::unexplained_share}) {
    policy.*share *= rest;
  }
  return policy;
}

double amdahl(double share) { return 1 / (1 - std::clamp(share, 0.0, kMostShare)); }

double bound_of_run(const Context& context, double step_s, double best_s) {
  const double train = context.train.value_or(1);
  return amdahl(train * (1 - std::clamp(best_s / step_s, 0.0, 1.0)));
}

double usable_cpus(const Context& context) {
  const Signals& signals = context.signals;
  const double left = signals.cpus_online && signals.others_cpus_used ? *signals.cpus_online - *signals.others_cpus_used
                                                                      : *context.cpus;
  const double least = std::max(signals.cpus_used.value_or(0), share_of_ready_thread(context));
  return std::clamp(left, std::min(least, *context.cpus), *context.cpus);
}

std::optional<std::int64_t> threads_beside_others(const Context& context, const Policy& policy) {
  const bool single = context.signals.trainers && std::round(*context.signals.trainers) <= 1;
  if (!single || !context.on_cpu || !context.cpus || !context.cpu_threads || !context.cpus_taken ||
      *context.cpus_taken < policy.others_cpus) {
    return std::nullopt;
  }
  const double left = std::max(1.0, std::round(*context.cpus - *context.cpus_taken));
  return left < *context.cpu_threads ? std::optional(static_cast<std::int64_t>(left)) : std::nullopt;
}

std::optional<double> overlapped_step_s(const Context& context, double loader_cpu_s, double cpus) {
  if (!context.rest_s || !context.signals.step_s) {
    return std::nullopt;
  }
  const double step_s = *context.signals.step_s;
  double cpu_s = loader_cpu_s;
  if (context.on_cpu) {
    // Measured CPU time of the process tree per step; without it, compute counts as one busy thread or the configured
    // number, which keeps the bound an upper one.
    cpu_s = context.signals.cpus_used
                ? *context.signals.cpus_used * step_s
                : loader_cpu_s + *context.rest_s * std::min(context.cpu_threads.value_or(1), *context.cpus);
  }
  return std::min(step_s, std::max(*context.rest_s, cpu_s / cpus));
}

std::optional<double> overlapped_step_s(const Context& context, double loader_cpu_s) {
  return context.cpus ? overlapped_step_s(context, loader_cpu_s, usable_cpus(context)) : std::nullopt;
}

double workers_on(const Context& context, double cpus, const Policy& policy) {
  const double on_cpu = context.work_on_cpu.value_or(1);
  const bool waits = on_cpu < policy.on_cpu;
  return waits ? std::floor(cpus * std::min(policy.workers_per_cpu, 1 / std::max(on_cpu, 1e-3))) : cpus;
}

Severity severity_of(double share, const Policy& policy) {
  if (share >= policy.critical_share) {
    return Severity::kCritical;
  }
  return share >= policy.warning_share ? Severity::kWarning : Severity::kInfo;
}

}  // namespace unidle::diagnose
