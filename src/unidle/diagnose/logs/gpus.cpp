// How busy the GPUs were, by a program that watched them.
#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/units.h"
#include "unidle/diagnose/logs/job_logs.h"

namespace unidle::diagnose::detail {

namespace {

using unidle::logs::GpuLog;
using unidle::logs::GpuUse;
using unidle::logs::Window;

/// Fewer looks than this, taken by hand around a run, do not say how busy a GPU is.
constexpr std::int64_t kFewestSamples = 5;
/// A GPU that nothing runs on keeps less than this share of its memory.
constexpr double kEmptyMemory = 0.02;
/// Looks that must all have been idle before a GPU counts as unused.
constexpr std::int64_t kIdleSamples = 30;

std::string percent(double share) { return fmt::format("{:.2f} %", share * 100); }

std::string gpu_name(const GpuUse& use) {
  return use.name.empty() ? "GPU " + use.id : fmt::format("GPU {} ({})", use.id, use.name);
}

/// `program` as GpuFormat has it, with its options.
std::string describe(const GpuUse& use, std::string_view program, Language language) {
  std::string text = say(language, "{} on {}, {} samples", program.substr(0, program.find(' ')), gpu_name(use),
                         grouped(static_cast<double>(use.samples)));
  if (use.first_ns && *use.last_ns > *use.first_ns) {
    text += say(language, " over {}", format_seconds(static_cast<double>(*use.last_ns - *use.first_ns) * 1e-9));
  }
  text += say(language, ": mean utilisation {}, at most {:.0f} %, none in {} of the samples",
              percent(use.utilisation.mean()), use.utilisation.most * 100,
              format_share(static_cast<double>(use.idle_samples) / static_cast<double>(use.utilisation.count)));
  if (use.power_w) {
    text += say(language, ", mean power {:.1f} W", use.power_w.mean());
    if (use.power_limit_w) {
      text += say(language, " of {:.0f} W", use.power_limit_w.most);
    }
  }
  if (use.memory_used && use.memory_total) {
    text += say(language, ", memory at most {} of {}", format_share(use.memory_used.most / use.memory_total.most),
                format_bytes(static_cast<std::uint64_t>(std::max(0.0, use.memory_total.most))));
  }
  if (use.longest_idle_ns > 0) {
    text += say(language, ", longest idle time {}", format_seconds(static_cast<double>(use.longest_idle_ns) * 1e-9));
  }
  return text;
}

/// Utilisation inside the training loop, where a text log with dates shows it.
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
      return say(job.language, "; inside the training loop, by the run's own log, {}", percent(use.utilisation.mean()));
    }
  }
  return "";
}

/// Every look found it idle and empty while the log shows training.
bool unused(const GpuUse& use, const JobLogs& job) {
  const bool idle = use.samples >= kIdleSamples && use.utilisation.most <= 0;
  const bool empty = use.memory_used && use.memory_total && use.memory_used.most / use.memory_total.most < kEmptyMemory;
  const auto* text = job.main_text();
  return idle && empty && text != nullptr && text->phases.training_seen;
}

void add_memory(const GpuUse& use, Signals& signals) {
  if (use.memory_used && use.memory_total && use.memory_total.most > 0) {
    signals.gpu_memory_used = std::clamp(use.memory_used.most / use.memory_total.most, 0.0, 1.0);
  }
}

/// What the rules about the card itself look at; a log that lacks the columns leaves them absent.
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

void add_use(const GpuUse& use, std::string_view program, const JobLogs& job, Signals& signals) {
  signals.device_busy = std::clamp(use.utilisation.mean(), 0.0, 1.0);
  signals.busy_is_limit = true;
  signals.device_busy_how = describe(use, program, job.language);
  add_memory(use, signals);
  add_card(use, signals);
  if (unused(use, job)) {
    signals.device_kind = "cpu";
    signals.evidence["device-unused"].push_back(say(job.language, "{} was idle and its memory empty in all {} samples",
                                                    gpu_name(use), grouped(static_cast<double>(use.samples))));
    signals.device_busy.reset();
    signals.device_busy_how.clear();
  } else if (signals.device_kind == "unknown") {
    signals.device_kind = "cuda";
  }
}

void add_wall(const GpuLog& log, Signals& signals) {
  if (signals.wall_s <= 0 && log.first_ns && *log.last_ns > *log.first_ns) {
    signals.wall_s = static_cast<double>(*log.last_ns - *log.first_ns) * 1e-9;
    signals.time.other = signals.wall_s;
  }
}

}  // namespace

void add_gpus(const JobLogs& job, const unidle::logs::OnRead& on_read, Signals& signals) {
  const GpuUse* busiest = nullptr;
  const GpuFile* from = nullptr;
  for (const GpuFile& file : job.gpus) {
    signals.gpus = std::max(signals.gpus.value_or(0), static_cast<int>(file.log.gpus.size()));
    const GpuUse* use = file.log.busiest();
    if (use != nullptr && (busiest == nullptr || use->utilisation.mean() > busiest->utilisation.mean())) {
      busiest = use;
      from = &file;
    }
    add_wall(file.log, signals);
  }
  for (const auto& text : job.texts) {
    if (!text.tables.gpus.empty()) {
      signals.gpus = std::max(signals.gpus.value_or(0), static_cast<int>(text.tables.gpus.size()));
    }
    const GpuUse* use = text.tables.busiest();
    if (busiest == nullptr && use != nullptr && use->samples >= kFewestSamples) {
      busiest = use;
    }
  }
  if (busiest == nullptr || signals.device_kind == "cpu") {
    return;  // how busy a GPU is says nothing about a run on the CPU
  }
  const bool by_trace = signals.device_busy.has_value();
  const Signals before = signals;
  // Tables in a run's own output are those of nvidia-smi.
  add_use(*busiest, from != nullptr ? from->format->program : "nvidia-smi", job, signals);
  if (from != nullptr && signals.device_busy) {
    signals.device_busy_how += in_loop(*from, *busiest, job, on_read);
  }
  if (by_trace) {  // the trace sees every kernel, but only a few steps: the samples see the whole run
    signals.device_busy_how += say(job.language, "; in the traced steps {}", before.device_busy_how);
  }
}

}  // namespace unidle::diagnose::detail
