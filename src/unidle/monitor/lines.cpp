#include "unidle/monitor/lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "unidle/base/clock.h"
#include "unidle/base/units.h"

namespace unidle::monitor {

using nlohmann::json;

namespace {

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

/// With milliseconds: "2026-01-31T12:00:00.123Z"
std::string precise_time(std::int64_t wall_ns) {
  std::string text = format_utc(wall_ns);
  text.pop_back();
  return fmt::format("{}.{:03}Z", text, wall_ns / kNsPerMs % 1000);
}

std::string field(const std::optional<double>& value) { return value ? fmt::format("{:.9g}", *value) : std::string(); }

/// "gpu.sm_activity" -> "sm_activity"
std::string short_name(std::string_view series) { return std::string(series.substr(series.find('.') + 1)); }

std::string gpu_line(const GpuNow& gpu, const Translator& translator) {
  const telemetry::GpuReading& now = gpu.reading;
  std::string line = fmt::format("{:<10}", gpu.subject);
  const auto share = [&](const char* label, const std::optional<double>& value) {
    line += value ? fmt::format("  {} {:>3.0f} %", translator.word(label), *value * 100) : "";
  };
  share("util", now.utilisation);
  share("SM", now.sm_activity);
  share("tensor", now.tensor_activity);
  if (const std::string_view why = gpu.why_busy_unknown(); !why.empty()) {
    line += "  " + translator.word(why);
  }
  if (now.power_w) {
    line += now.power_limit_w ? fmt::format("  {:.0f}/{:.0f} W", *now.power_w, *now.power_limit_w)
                              : fmt::format("  {:.0f} W", *now.power_w);
  }
  if (now.memory_bytes) {
    line += "  " + format_bytes(static_cast<std::uint64_t>(*now.memory_bytes));
  }
  if (now.temperature_c) {
    line += fmt::format("  {:.0f} C", *now.temperature_c);
  }
  const std::string held = held_down_by(now, translator);
  line += held.empty() ? "" : "  " + translator.say("held down by {}", held);
  return line;
}

}  // namespace

std::string held_down_by(const telemetry::GpuReading& reading, const Translator& translator) {
  std::string words;
  for (const auto name : telemetry::throttle_names(static_cast<std::uint64_t>(reading.throttle_reasons.value_or(0)))) {
    words += (words.empty() ? "" : translator.word(", ")) + translator.word(name);
  }
  return words;
}

std::string plain_lines(const Snapshot& snapshot, Language language) {
  const Translator translator{language};
  const std::string time = format_utc(snapshot.wall_ns).substr(11, 8);
  std::vector<std::string> lines;
  for (const GpuNow& gpu : snapshot.gpus) {
    lines.push_back(fmt::format("{}  {}", time, gpu_line(gpu, translator)));
  }
  std::string last = fmt::format("{}  {:<10}", time, "cpu");
  if (const auto share = snapshot.cpu_share()) {
    const double all = snapshot.pid ? snapshot.cpus_allowed : snapshot.cpus_online;
    last += fmt::format("  {:>3.0f} %  ", *share * 100);
    last += translator.say("{} of {} CPUs", format_number(*snapshot.cpu_used()), format_number(all));
  }
  const auto loaders = std::count_if(snapshot.processes.begin(), snapshot.processes.end(),
                                     [](const ProcessNow& p) { return p.role == telemetry::Role::kLoader; });
  last += loaders > 0 ? "  " + translator.say("{} loaders", loaders) : "";
  if (snapshot.run && snapshot.run->steps_per_s) {
    last += "  " + translator.say("{} steps/s", format_number(*snapshot.run->steps_per_s));
    last += snapshot.run->input_share ? "  " + translator.say("input wait {}", format_share(*snapshot.run->input_share))
                                      : "";
  }
  lines.push_back(last);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

json sample_json(const Snapshot& snapshot) {
  json gpus = json::array();
  for (const GpuNow& gpu : snapshot.gpus) {
    json entry = {{"gpu", gpu.subject}, {"name", gpu.name}, {"memory_total", or_null(gpu.memory_total_bytes)}};
    for (const telemetry::GpuColumn& column : telemetry::gpu_columns()) {
      entry[short_name(column.series)] = or_null(gpu.reading.*column.value);
    }
    entry["processes"] = json::array();
    for (const telemetry::GpuProcess& process : gpu.processes) {
      entry["processes"].push_back({{"pid", process.pid},
                                    {"memory", process.used_bytes ? json(*process.used_bytes) : json(nullptr)},
                                    {"share", or_null(process.share)}});
    }
    gpus.push_back(std::move(entry));
  }
  json processes = json::array();
  for (const ProcessNow& process : snapshot.processes) {
    processes.push_back({{"pid", process.pid},
                         {"name", process.name},
                         {"role", telemetry::to_string(process.role)},
                         {"state", std::string(1, process.state)},
                         {"cpu", or_null(process.cpu)},
                         {"run_delay", or_null(process.run_delay)},
                         {"memory", process.rss_bytes}});
  }
  json run = nullptr;
  if (snapshot.run) {
    run = {{"folder", snapshot.run->folder.string()},
           {"pid", snapshot.run->pid},
           {"step", snapshot.run->step ? json(*snapshot.run->step) : json(nullptr)},
           {"steps_per_s", or_null(snapshot.run->steps_per_s)},
           {"samples_per_s", or_null(snapshot.run->samples_per_s)},
           {"input_share", or_null(snapshot.run->input_share)},
           {"loss", or_null(snapshot.run->loss)},
           {"processes", json::array()}};
    for (const account::RecentProcess& each : snapshot.run->processes) {
      run["processes"].push_back({{"pid", each.process}, {"input_share", or_null(each.input_share)}});
    }
  }
  return {{"type", "sample"},
          {"t", precise_time(snapshot.wall_ns)},
          {"cpu",
           {{"used", or_null(snapshot.cpu_used())},
            {"share", or_null(snapshot.cpu_share())},
            {"allowed", snapshot.cpus_allowed},
            {"online", snapshot.cpus_online},
            {"watched_pid", snapshot.pid ? json(*snapshot.pid) : json(nullptr)}}},
          {"host", snapshot.host},
          {"gpus", snapshot.gpus_known ? gpus : json(nullptr)},
          {"processes", processes},
          {"run", run}};
}

std::string state_name(char state) {
  switch (state) {
    case 'R': return "running";
    case 'S': return "waiting";
    case 'D': return "disk wait";
    case 'T':
    case 't': return "stopped";
    case 'Z': return "ended";
    default: return std::string(1, state);
  }
}

std::string CsvWriter::header(const Snapshot& snapshot) {
  std::vector<std::string> names = {"time", "cpu_used", "cpu_share", "steps_per_s", "samples_per_s", "input_share"};
  for (const GpuNow& gpu : snapshot.gpus) {
    subjects_.push_back(gpu.subject);
    for (const telemetry::GpuColumn& column : telemetry::gpu_columns()) {
      names.push_back(gpu.subject + "." + short_name(column.series));
    }
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::string CsvWriter::row(const Snapshot& snapshot) const {
  const RunNow none;
  const RunNow& run = snapshot.run ? *snapshot.run : none;
  std::vector<std::string> fields = {precise_time(snapshot.wall_ns), field(snapshot.cpu_used()),
                                     field(snapshot.cpu_share()),    field(run.steps_per_s),
                                     field(run.samples_per_s),       field(run.input_share)};
  for (const std::string& subject : subjects_) {
    const auto gpu = std::find_if(snapshot.gpus.begin(), snapshot.gpus.end(),
                                  [&](const GpuNow& one) { return one.subject == subject; });
    for (const telemetry::GpuColumn& column : telemetry::gpu_columns()) {
      fields.push_back(gpu != snapshot.gpus.end() ? field(gpu->reading.*column.value) : "");
    }
  }
  return fmt::format("{}", fmt::join(fields, ","));
}

}  // namespace unidle::monitor
