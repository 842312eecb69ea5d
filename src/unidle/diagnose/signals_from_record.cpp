#include "unidle/diagnose/signals_from_record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "unidle/account/account.h"
#include "unidle/account/epochs.h"
#include "unidle/account/program_options.h"
#include "unidle/base/clock.h"
#include "unidle/base/json.h"
#include "unidle/base/printable.h"
#include "unidle/diagnose/context.h"
#include "unidle/diagnose/detail/development.h"
#include "unidle/diagnose/detail/notes.h"
#include "unidle/diagnose/detail/output.h"
#include "unidle/diagnose/detail/readings.h"
#include "unidle/diagnose/detail/trace_facts.h"
#include "unidle/knobs/knob.h"
#include "unidle/knobs/same_value.h"
#include "unidle/record/note_types.h"
#include "unidle/telemetry/host.h"
#include "unidle/trace/recorded.h"

namespace unidle::diagnose {

namespace {

using account::Account;
using account::RunData;
using account::Timeline;
using nlohmann::json;

void read_end(const record::Reader& reader, const RunData& run, Signals& signals) {
  signals.run_options = knobs::run_options_from(run.meta_value(record::meta::kRunOptions));
  const json command = run.meta_value(record::meta::kCommand);
  for (const json& word : command) {
    signals.command.push_back(word.is_string() ? word.get<std::string>() : "");
  }
  signals.folder = run.meta_text(record::meta::kFolder);
  signals.started_wall_ns = parse_utc(run.meta_text(record::meta::kStartedUtc), "%Y-%m-%dT%H:%M:%SZ");
  const json exit = run.meta_value(record::meta::kExit);
  if (const auto code = whole_in(exit, "code")) {
    signals.exit_code = static_cast<int>(*code);
  }
  if (const auto signal = whole_in(exit, "signal"); signal && *signal != 0) {
    signals.exit_signal = static_cast<int>(*signal);
  }
  signals.oom_kills = whole_in(exit, "oom_kills");
  const json outcome = run.meta_value(record::meta::kOutcome);
  for (const Outcome one : {Outcome::kCompleted, Outcome::kFailed, Outcome::kTimedOut, Outcome::kStopped}) {
    if (outcome == to_string(one)) {
      signals.outcome = one;
    }
  }
  signals.output_tail = reader.output_tail("stdout");
  signals.error_tail = reader.output_tail("stderr");
}

void read_unread_keys(const std::vector<record::Note>& notes, Signals& signals) {
  record::each_note<record::NoteType::kUnread>(notes, [&](const auto& note) {
    const json keys = note.value("keys");
    for (const json& key : keys.is_array() ? keys : json::array()) {
      if (const std::string name = text_in(key, "key"); !name.empty()) {
        signals.unread_keys.emplace_back(name, text_in(key, "at"));
      }
    }
  });
}

/// The last exception counts, since a program may train in one process after another. Of those without training after
/// them, one that is not a consequence of another process's failure is preferred.
void read_exceptions(const RunData& run, Signals& signals) {
  using Exception = record::NoteOf<record::NoteType::kException>;
  const std::vector<record::Step>& steps = run.steps;
  const std::vector<record::Note>& notes = run.notes;
  std::int64_t last_step_ns = std::numeric_limits<std::int64_t>::min();
  for (const record::Step& step : steps) {
    last_step_ns = std::max(last_step_ns, step.t_ns);
  }
  const auto order = [&](const Exception& one) {
    const bool end = last_step_ns <= one.t_ns();
    return std::tuple(end, end ? -static_cast<int>(logs::facts_of_message(one.text("message")).blame) : 0, one.t_ns());
  };
  std::optional<Exception> last;
  record::each_note<record::NoteType::kException>(
      notes, [&](const auto& note) { last = !last || order(note) >= order(*last) ? note : *last; });
  if (!last) {
    return;
  }
  std::set<std::pair<std::string, std::string>> earlier;
  record::each_note<record::NoteType::kException>(notes, [&](const auto& note) {
    if (note.t_ns() <= last->t_ns()) {
      earlier.emplace(note.text("message"), note.text("where"));
    }
  });
  signals.exception = without_escapes(last->text("message"));
  signals.exception_where = last->text("where");
  signals.steps_after_exception =
      std::count_if(steps.begin(), steps.end(), [&](const record::Step& step) { return step.t_ns > last->t_ns(); });
  signals.earlier_exceptions = static_cast<std::int64_t>(earlier.size()) - 1;
}

/// Samples per epoch: as the program reports, or the length of the dataset.
std::optional<double> known_samples_per_epoch(const RunData& run, const Signals& signals) {
  std::optional<double> each = account::reported_samples_per_epoch(run);
  if (!each && signals.loader && signals.loader->dataset_len.value_or(0) > 0) {
    each = static_cast<double>(*signals.loader->dataset_len);
  }
  return each;
}

/// For a record without steps. A process that could not be observed explains more than the notes of observed ones.
std::string why_blind(const std::vector<record::Note>& notes) {
  std::string why;
  record::each_note<record::NoteType::kShim>(notes, [&](const auto& note) {
    const bool off = why == "off" || note.text("status") == "off";
    why = off ? "off" : "no-training";
  });
  bool unseen = false;
  record::each_note<record::NoteType::kOperations>(notes, [&](const auto& note) {
    constexpr std::int64_t kEnough = 20;  // fewer may accumulate gradients for the first step
    why = why == "no-training" && note.whole("passes").value_or(0) >= kEnough ? "no-update" : why;
  });
  record::each_note<record::NoteType::kUnseen>(notes, [&](const auto& note) {
    why = unseen ? why : note.text("why");
    unseen = true;
  });
  return why;
}

void read_notes(const RunData& run, const Timeline& timeline, Signals& signals) {
  read_unread_keys(run.notes, signals);
  read_exceptions(run, signals);
  if (timeline.steps.empty()) {
    signals.blind = why_blind(run.notes);
  }
  detail::read_notes(detail::Notes(run.notes, timeline.process), signals);
}

/// Time in which one worker makes a batch, with its waits for a CPU; 0 when samples were not timed.
double batch_time_s(const Signals& signals) {
  if (!signals.samples || signals.samples->count <= 0 || !signals.loader || !signals.loader->batch_size) {
    return 0;
  }
  return signals.samples->total_s / static_cast<double>(signals.samples->count) *
         static_cast<double>(*signals.loader->batch_size);
}

void read_passes(const record::Reader& reader, const RunData& run, const Timeline& timeline, Signals& signals) {
  const auto samples_per_epoch = known_samples_per_epoch(run, signals);
  signals.input_bursts = account::input_bursts(timeline, samples_per_epoch);
  double samples = 0;
  for (const record::Step& step : timeline.steps) {
    samples += static_cast<double>(step.samples);
  }
  if (!samples_per_epoch || samples <= 0) {
    return;
  }
  signals.epochs = samples / *samples_per_epoch;
  const double steps_per_epoch = static_cast<double>(timeline.steps.size()) / *signals.epochs;
  signals.checkpoint_each_epoch =
      signals.checkpoint_every && std::abs(static_cast<double>(*signals.checkpoint_every) - steps_per_epoch) < 1;
  if (signals.loader && signals.loader->workers.value_or(0) > 0 && signals.loader->persistent_workers == false &&
      signals.loader->starts.value_or(0) > 1) {
    // The program measures a start until its first batch; workers that start later delay the next batches. Workers that
    // stay have to make the first batch of an epoch as well.
    const double seen_s = account::epoch_start_wait_s(timeline, *samples_per_epoch, *signals.loader->workers) -
                          batch_time_s(signals) * static_cast<double>(*signals.loader->starts);
    signals.loader->start_wait_s = std::max(signals.loader->start_wait_s.value_or(0), seen_s);
  }
  if (const auto later = account::after_first_epoch(timeline, *samples_per_epoch)) {
    signals.late_input_s = later->input_s;
    signals.late_training_s = later->training_s;
    double busy_ns = 0;
    std::int64_t made = 0;
    for (const record::SampleWork& work : reader.sample_work()) {
      if (work.t_ns >= later->begin_ns) {
        busy_ns += static_cast<double>(work.busy_ns);
        made += work.samples;
      }
    }
    if (made > 0) {
      signals.late_sample_s = busy_ns * 1e-9 / static_cast<double>(made);
    }
  }
}

void read_host(const RunData& run, const Account& account, Signals& signals) {
  const json host = run.meta_value(record::meta::kHost);
  signals.cpus_allowed = account.cpus_allowed.now;
  signals.cpus_at_start = account.cpus_allowed.at_start;
  signals.cpus_online = number_in(host, "cpus_online");
  signals.cpus_used = account.cpus.own;
  signals.host_cpus_used = account.cpus.machine;
  signals.others_cpus_used = account.cpus.others;
  signals.run_delay = account.cpus.delay;
  if (host.is_object() && host.contains("cpu_flags") && host["cpu_flags"].is_array() && !host["cpu_flags"].empty()) {
    const json& flags = host["cpu_flags"];
    telemetry::HostFacts facts;
    for (const json& flag : flags) {
      facts.cpu_flags.push_back(flag.is_string() ? flag.get<std::string>() : "");
    }
    signals.cpu_bf16 = facts.cpu_bf16();
    signals.virtual_machine = std::find(flags.begin(), flags.end(), "hypervisor") != flags.end();
  }
  if (const json gpus = run.meta_value(record::meta::kGpus); gpus.is_array()) {
    signals.gpus = static_cast<int>(gpus.size());
    if (!signals.gpu_capability && !gpus.empty() && !text_in(gpus.front(), "capability").empty()) {
      signals.gpu_capability = text_in(gpus.front(), "capability");
    }
  }
}

/// When the program reports no device, a machine without a GPU leaves only the CPU.
void read_device_kind(Signals& signals) {
  const std::string device = knobs::plain_value(signals.effective("device").value_or("unknown"));
  if (device.starts_with("cuda")) {
    signals.device_kind = "cuda";
  } else if (device.starts_with("hip") || device.starts_with("rocm")) {
    signals.device_kind = "rocm";
  } else if (device == "cpu" || signals.gpus == 0) {
    signals.device_kind = "cpu";
  }
}

/// A profiler window of the training process, or the one with the least busy device.
std::optional<trace::TraceSummary> window_of(const record::Reader& reader, const Timeline& timeline) {
  std::vector<trace::RecordedTrace> windows = trace::recorded_traces(reader);
  const auto rank = [&](const trace::RecordedTrace& one) {
    return std::pair(one.process != timeline.process.value_or(one.process), one.summary.busy().value_or(1));
  };
  const auto chosen =
      std::min_element(windows.begin(), windows.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return chosen == windows.end() ? std::nullopt : std::optional(std::move(chosen->summary));
}

/// The window shows every kernel; the program's own events count gaps between kernels as busy time.
void read_window(const trace::TraceSummary& window, Language language, Signals& signals) {
  if (window.busiest() == nullptr) {
    return;
  }
  const trace::DeviceUse& device = *window.busiest();
  detail::add_kernel_facts(window, signals);
  if (!window.step_s) {
    return;
  }
  if (signals.wall_s > 0) {
    signals.timeline = detail::timeline_of(window, signals.time.train / signals.wall_s);
  }
  signals.device_step_s = device.busy_s / static_cast<double>(window.step_s.count);
  signals.kernel_time_known = true;
  if (const auto busy = signals.share_of_step(signals.device_step_s); busy && !signals.device_busy) {
    signals.device_busy = busy;
    signals.device_busy_how = detail::describe(window, device, language);
  }
}

void read_busy(const record::Reader& reader, const RunData& run, const Account& account, Language language,
               Signals& signals) {
  const Timeline& timeline = account.timeline;
  const account::Readings readings(run, timeline);
  detail::read_host_series(run, readings, signals);
  const std::optional<trace::TraceSummary> window = window_of(reader, timeline);
  if (window) {
    detail::add_flops(*window, signals);
  }
  if (signals.device_kind != "cpu") {
    detail::read_gpu_series(account, readings, language, signals);
    detail::read_kernel_series(readings, language, signals);
    signals.device_span_s = readings.mean(record::series::kStepDevice);
    signals.device_period_s = readings.mean(record::series::kStepDevicePeriod);
    signals.device_step_s = signals.device_span_s;
    if (window) {
      read_window(*window, language, signals);
    }
    if (const auto busy = signals.share_of_step(signals.device_step_s); busy && !signals.device_busy) {
      signals.device_busy = busy;
      signals.device_busy_how = translate(language, "device time of the steps by its own events");
      signals.busy_by_events = signals.busy_is_limit = true;
    }
  } else if (account.cpu_utilisation) {
    signals.device_busy = account.cpu_utilisation;
    signals.device_busy_how =
        translate(language, "CPU time of the command and its children while training, of the CPUs that it may use");
  }
}

/// By the program's own totals, which are complete; otherwise by the seconds of sample work.
void read_loader(const record::Reader& reader, const Timeline& timeline, Signals& signals) {
  if (signals.samples) {
    const SampleFacts& samples = *signals.samples;
    const double made_s = std::max(0.0, samples.total_s - samples.run_delay_s.value_or(0));
    signals.sample_s = made_s / static_cast<double>(samples.count);
    const auto workers = signals.loader ? signals.loader->workers : std::nullopt;
    if (workers && *workers > 0 && signals.time.train > 0) {
      const double available_s = static_cast<double>(*workers) * signals.time.train;
      signals.loader_busy = std::clamp((samples.total_s + samples.collate_s.value_or(0)) / available_s, 0.0, 1.0);
    }
    return;
  }
  std::int64_t samples = 0;
  double busy_ns = 0;
  double threads_busy_ns = 0;
  std::set<std::pair<std::int64_t, std::int64_t>> threads;
  const std::int64_t from_ns = timeline.steps.empty() ? 0 : timeline.steps[timeline.first_counted].t_ns;
  const std::int64_t to_ns =
      timeline.steps.empty() ? 0 : timeline.steps.back().t_ns + timeline.steps.back().duration_ns;
  for (const record::SampleWork& work : reader.sample_work()) {
    samples += work.samples;
    busy_ns += static_cast<double>(work.busy_ns);
    // Work on a separate thread or in a separate process is a worker's.
    const bool worker = work.thread >= 1 || (timeline.process && work.process != *timeline.process);
    if (worker && work.t_ns >= from_ns && work.t_ns <= to_ns) {
      threads.emplace(work.process, work.thread);
      threads_busy_ns += static_cast<double>(work.busy_ns);
    }
  }
  if (samples > 0) {
    signals.sample_s = busy_ns * 1e-9 / static_cast<double>(samples);
  }
  if (!threads.empty() && to_ns > from_ns) {
    const double available_ns = static_cast<double>(threads.size()) * static_cast<double>(to_ns - from_ns);
    signals.loader_busy = std::clamp(threads_busy_ns / available_ns, 0.0, 1.0);
  }
}

/// The program's options that the command leaves out, with the values that are in effect.
void read_omitted(const RunData& run, Signals& signals) {
  knobs::Settings effective;
  for (const auto& [name, reading] : signals.settings) {
    const knobs::Knob* knob = knobs::find_knob(name);
    const bool known = knob != nullptr && reading.effective;
    if (const auto value = known ? knobs::parse_value(*knob, *reading.effective) : std::nullopt) {
      effective.set(name, *value);
    }
  }
  signals.omitted = account::omitted_options(run, signals.command, effective);
  signals.switches = account::omitted_switches(run, signals.command);
}

void read_losses(const Timeline& timeline, Signals& signals) {
  LossFacts losses;
  for (const record::Step& step : timeline.steps) {
    if (!step.loss) {
      continue;
    }
    ++losses.seen;
    if (std::isfinite(*step.loss)) {
      losses.lasting = 0;
      losses.last_finite = {step.index, *step.loss};
    } else if (losses.lasting++ == 0) {
      losses.first_step = step.index;
    }
  }
  if (losses.seen > 0) {
    signals.losses = losses;
  }
}

Signals signals_in(const record::Reader& reader, const RunData& run, Language language) {
  const Account account = account::account_of(run);
  const Timeline& timeline = account.timeline;
  Signals signals;
  read_end(reader, run, signals);
  signals.wall_s = timeline.wall_s();
  signals.time = account.phases;
  if (timeline.spans_seen) {
    signals.validations = timeline.validations;
    signals.checkpoints = timeline.checkpoints;
    signals.checkpoint_every = timeline.checkpoint_every;
  }
  if (!timeline.steps.empty()) {
    signals.steps = static_cast<std::int64_t>(timeline.steps.size());
    signals.trainers = timeline.rank_factor;
    signals.after_training_s = account::after_training_s(timeline);
    signals.tests = account::tests_after_training(timeline);
    signals.dry_runs = account::dry_runs(timeline);
  }
  signals.samples_per_s = account.rates.training;
  signals.steps_per_s = account.rates.steps_per_s;
  signals.rated_before_window = timeline.window;
  if (account.step) {
    signals.step = account.step->shares;
    signals.step_s = account.step->step_s;
    signals.syncs_per_step = account.step->syncs_per_step;
    signals.batch_samples = account.step->batch_samples;
    signals.micro_batches = account.step->micro_batches;
  }
  signals.ranks = account.ranks;
  signals.training_process = timeline.process;
  signals.settings = account::knob_readings(run);
  read_omitted(run, signals);
  read_notes(run, timeline, signals);
  if (signals.gpu.oom_steps_before) {  // the program may have gone on with smaller ones
    const auto batch = account::largest_batch(timeline.steps, *signals.gpu.oom_steps_before);
    signals.batch_samples = batch ? batch : signals.batch_samples;
  }
  read_host(run, account, signals);
  read_device_kind(signals);
  read_busy(reader, run, account, language, signals);
  read_loader(reader, timeline, signals);
  read_passes(reader, run, timeline, signals);
  detail::read_development(run, account, signals);
  signals.stalls = account::stalls(timeline, account.periods);
  signals.step_lengths_seen = !timeline.steps.empty();
  read_losses(timeline, signals);
  return signals;
}

}  // namespace

Signals read_signals(const record::Reader& reader, Language language) {
  return signals_in(reader, account::load_run(reader), language);
}

}  // namespace unidle::diagnose
