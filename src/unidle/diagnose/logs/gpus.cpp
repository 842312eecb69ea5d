// How busy the GPUs were, according to a program that watched them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/detail/finding.h"
#include "unidle/diagnose/logs/job_logs.h"
#include "unidle/logs/timestamp.h"

namespace unidle::diagnose::detail {

namespace {

using unidle::logs::GpuLog;
using unidle::logs::GpuUse;
using unidle::logs::Window;

/// Fewer samples, taken by hand, do not show how busy a GPU is.
constexpr std::int64_t kFewestSamples = 5;
/// Tables further apart, as a script prints one at its start, are no measurement.
constexpr double kFarthestSamplesS = 600;
/// An unused GPU has less than this share of its memory allocated.
constexpr double kEmptyMemory = 0.02;
/// All of at least this many samples must be idle before a GPU counts as unused.
constexpr std::int64_t kIdleSamples = 30;
/// An idle GPU shows a per cent now and then.
constexpr double kIdleMean = 0.002;

std::string percent(double share) { return fmt::format("{:.2f} %", share * 100); }

std::string gpu_name(const GpuUse& use) {
  return use.name.empty() ? "GPU " + use.id : fmt::format("GPU {} ({})", use.id, use.name);
}

/// `program` names the GpuFormat with its options.
std::string describe(const GpuUse& use, std::string_view program, Language language) {
  std::string text = translate(language, "{} on {}, {} samples", program.substr(0, program.find(' ')), gpu_name(use),
                               grouped(static_cast<double>(use.samples)));
  if (use.first_ns && *use.last_ns > *use.first_ns) {
    text += translate(language, " over {}", format_seconds(static_cast<double>(*use.last_ns - *use.first_ns) * 1e-9));
  }
  text += translate(language, ": mean utilisation {}, at most {:.0f} %, none in {} of the samples",
                    percent(use.utilisation.mean()), use.utilisation.most * 100,
                    format_share(static_cast<double>(use.idle_samples) / static_cast<double>(use.utilisation.count)));
  if (use.power_w) {
    text += translate(language, ", mean power {:.1f} W", use.power_w.mean());
    if (use.power_limit_w) {
      text += translate(language, " of {:.0f} W", use.power_limit_w.most);
    }
  }
  if (use.memory_used && use.memory_total) {
    text += translate(language, ", memory at most {} of {}", format_share(use.memory_used.most / use.memory_total.most),
                      format_noted_bytes(use.memory_total.most));
  }
  if (use.longest_idle_ns > 0) {
    text +=
        translate(language, ", longest idle time {}", format_seconds(static_cast<double>(use.longest_idle_ns) * 1e-9));
  }
  return text;
}

/// Utilisation inside the training loop, when a text log with dates shows where it is.
std::string in_loop(const GpuFile& file, const GpuUse& busiest, const JobLogs& job,
                    const unidle::logs::OnRead& on_read) {
  const auto* text = job.main_text();
  if (text == nullptr || !text->has_date || !text->phases.loop_begin_ns || !busiest.first_ns) {
    return "";
  }
  const Window window{*text->phases.loop_begin_ns, *text->phases.loop_end_ns};
  if (window.to_ns <= *busiest.first_ns || window.from_ns >= *busiest.last_ns) {
    return "";
  }
  unidle::logs::Source source(file.path, on_read);
  const GpuLog log = file.format->read(source, window);
  for (const GpuUse& use : log.gpus) {
    if (use.id == busiest.id && use.utilisation) {
      return translate(job.language, "; inside the training loop, by the run's own log, {}",
                       percent(use.utilisation.mean()));
    }
  }
  return "";
}

bool idle(const GpuUse& use) { return use.samples >= kIdleSamples && use.utilisation && use.utilisation.most <= 0; }

bool empty(const GpuUse& use) {
  return use.memory_used && use.memory_total && use.memory_used.most / use.memory_total.most < kEmptyMemory;
}

/// True when every sample found it idle and empty while the log shows training.
bool unused(const GpuUse& use, const JobLogs& job) {
  const auto* text = job.main_text();
  return idle(use) && empty(use) && text != nullptr && text->phases.training_seen;
}

/// Names the GPUs of a log that were (nearly) idle while another one worked.
std::string idle_ones(const GpuLog& log, const GpuUse& busiest, Language language, Signals& signals) {
  std::vector<std::string> ids;
  bool all_empty = true;
  double most = 0;
  double sum = 0;
  double measured = 0;
  for (const GpuUse& use : log.gpus) {
    if (!use.utilisation) {
      continue;
    }
    sum += use.utilisation.mean();
    measured += 1;
    if (use.samples >= kFewestSamples && use.utilisation.mean() < kIdleMean) {
      ids.push_back(use.id);
      all_empty = all_empty && empty(use);
      most = std::max(most, use.utilisation.most);
    }
  }
  if (ids.empty() || busiest.utilisation.mean() < kIdleMean) {
    return "";
  }
  signals.idle_gpus = fmt::format("{}", fmt::join(ids, ", "));
  const std::string how = most > 0 ? translate(language, " (at most {:.0f} %)", most * 100)
                                   : std::string(translate(language, " in all samples"));
  return translate(language, "; GPU {} did nothing{}{}: the {} GPUs are {} busy on average", signals.idle_gpus, how,
                   all_empty ? translate(language, " and held no memory") : "", grouped(measured),
                   percent(sum / measured));
}

/// The complaint of the watching program, with its time.
std::string trouble(const GpuFile& file, Language language) {
  if (!file.log.complaint) {
    return "";
  }
  const std::string_view program = file.format->program.substr(0, file.format->program.find(' '));
  return file.log.complaint_ns
             ? translate(language, "after {} {} said: {}", unidle::logs::format_stamp(*file.log.complaint_ns), program,
                         *file.log.complaint)
             : translate(language, "{} said: {}", program, *file.log.complaint);
}

void add_memory(const GpuUse& use, Signals& signals) {
  if (use.memory_used && use.memory_total && use.memory_total.most > 0) {
    signals.gpu_memory_used = std::clamp(use.memory_used.most / use.memory_total.most, 0.0, 1.0);
  }
}

/// Signals for the rules about the card itself; columns that the log lacks stay absent.
void add_card(const GpuUse& use, Signals& signals) {
  const auto mean = [](const unidle::logs::Readings& readings) {
    return readings ? std::optional(readings.mean()) : std::nullopt;
  };
  const auto most = [](const unidle::logs::Readings& readings) {
    return readings ? std::optional(readings.most) : std::nullopt;
  };
  GpuFacts& gpu = signals.gpu;
  if (use.throttled_known > 0) {
    gpu.throttled = static_cast<double>(use.throttled) / static_cast<double>(use.throttled_known);
    gpu.throttle_reasons = "heat or a hardware slow-down";
  }
  gpu.clock_mhz = mean(use.sm_mhz);
  gpu.clock_max_mhz = most(use.sm_mhz_most);
  gpu.link_width = most(use.link_width);
  gpu.link_width_max = most(use.link_width_most);
  gpu.link_generation = most(use.link_gen);
  gpu.link_generation_max = most(use.link_gen_most);
  if (use.memory_total) {
    gpu.memory_bytes = static_cast<std::int64_t>(use.memory_total.most);
  }
}

void add_use(const GpuUse& use, std::string_view program, std::string_view kind, const JobLogs& job, Signals& signals) {
  signals.device_busy = std::clamp(use.utilisation.mean(), 0.0, 1.0);
  signals.busy_is_limit = true;
  signals.device_busy_how = describe(use, program, job.language);
  add_memory(use, signals);
  add_card(use, signals);
  if (unused(use, job)) {
    signals.device_kind = "cpu";
    signals.told_of_idle_device.push_back(translate(job.language, "{} was idle and its memory empty in all {} samples",
                                                    gpu_name(use), grouped(static_cast<double>(use.samples))));
    signals.device_busy.reset();
    signals.device_busy_how.clear();
  } else if (signals.device_kind == "unknown") {
    signals.device_kind = kind;
  }
}

void add_wall(const GpuLog& log, Signals& signals) {
  if (signals.wall_s <= 0 && log.first_ns && *log.last_ns > *log.first_ns) {
    signals.wall_s = static_cast<double>(*log.last_ns - *log.first_ns) * 1e-9;
    signals.time.other = signals.wall_s;
  }
}

/// Whether plain tables in a text were taken regularly enough to be a measurement.
bool measures(const GpuUse& use) {
  const double span_s = use.first_ns ? static_cast<double>(*use.last_ns - *use.first_ns) * 1e-9 : 0;
  return use.samples >= kFewestSamples && span_s <= kFarthestSamplesS * static_cast<double>(use.samples - 1);
}

/// The GPU that represents the run, and the program that watched it.
struct Watched {
  const GpuUse* use = nullptr;
  const GpuLog* log = nullptr;
  const GpuFile* file = nullptr;  // nullptr: nvidia-smi tables in the run's own output
};

Watched busiest_of(const JobLogs& job, Signals& signals) {
  Watched busiest;
  const auto count = [&](const GpuLog& log) {
    if (!log.gpus.empty()) {
      signals.gpus = std::max(signals.gpus.value_or(0), static_cast<int>(log.gpus.size()));
    }
  };
  for (const GpuFile& file : job.gpus) {
    count(file.log);
    const GpuUse* use = file.log.busiest();
    if (use != nullptr && (busiest.use == nullptr || use->utilisation.mean() > busiest.use->utilisation.mean())) {
      busiest = {use, &file.log, &file};
    }
    add_wall(file.log, signals);
  }
  for (const auto& text : job.texts) {
    count(text.tables);
    const GpuUse* use = text.tables.busiest();
    if (busiest.use == nullptr && use != nullptr && measures(*use)) {
      busiest = {use, &text.tables, nullptr};
    }
  }
  return busiest;
}

}  // namespace

void add_gpus(const JobLogs& job, const unidle::logs::OnRead& on_read, Signals& signals) {
  const Watched busiest = busiest_of(job, signals);
  std::string troubles;
  for (const GpuFile& file : job.gpus) {
    if (const std::string said = trouble(file, job.language); !said.empty()) {
      troubles += "; " + said;
      signals.failure_evidence.push_back(said);
    }
  }
  if (busiest.use == nullptr && !job.gpus.empty() && !signals.device_busy && signals.device_busy_how.empty()) {
    signals.device_busy_how =
        translate(job.language, "no utilisation of a GPU was read from {}", job.gpus.front().path.filename().string()) +
        troubles;
  }
  if (busiest.use == nullptr || signals.device_kind == "cpu") {
    return;  // the GPU's utilisation says nothing about a run on the CPU
  }
  const bool by_trace = signals.device_busy.has_value();
  const Signals before = signals;
  add_use(*busiest.use, busiest.file != nullptr ? busiest.file->format->program : "nvidia-smi",
          busiest.file != nullptr ? busiest.file->format->device_kind : "cuda", job, signals);
  if (signals.device_busy) {
    signals.device_busy_how += busiest.file != nullptr ? in_loop(*busiest.file, *busiest.use, job, on_read) : "";
    signals.device_busy_how += idle_ones(*busiest.log, *busiest.use, job.language, signals) + troubles;
  }
  if (by_trace) {  // the trace sees every kernel of a few steps; samples cover the whole run
    signals.device_busy_how += translate(job.language, "; in the traced steps {}", before.device_busy_how);
  }
}

}  // namespace unidle::diagnose::detail
