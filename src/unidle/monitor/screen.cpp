#include "unidle/monitor/screen.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/clock.h"
#include "unidle/base/layout.h"
#include "unidle/base/printable.h"
#include "unidle/base/units.h"
#include "unidle/monitor/lines.h"

namespace unidle::monitor {

namespace {

constexpr std::size_t kHistory = 240;
/// Bounds for utilisation: below a third is bad, above three quarters good.
constexpr double kLow = 0.33;
constexpr double kHigh = 0.75;

constexpr const char* kUnicodeLevels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr const char* kAsciiLevels[] = {"_", ".", ":", "-", "=", "+", "*", "#"};

std::size_t columns_of(std::string_view text) { return static_cast<std::size_t>(display_width(text)); }

/// Returns the printable front of at most `most` columns: processes and devices choose their own names. Without
/// `unicode`, every non-ASCII character becomes a question mark.
std::string clipped(std::string_view given, std::size_t most, bool unicode) {
  std::string text = printable_line(given);
  if (!unicode) {
    std::erase_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; });
    std::replace_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  }
  return std::string(prefix_of_width(text, static_cast<int>(most)));
}

Style style_of(double share) { return share < kLow ? Style::kBad : share < kHigh ? Style::kMiddling : Style::kGood; }

std::string bar(double share, int width, bool unicode) {
  const int full = std::clamp(static_cast<int>(std::lround(share * width)), 0, width);
  std::string text;
  for (int i = 0; i < width; ++i) {
    text += i < full ? (unicode ? "█" : "#") : (unicode ? "·" : ".");
  }
  return text;
}

std::string sparkline(const std::deque<double>& values, int width, bool unicode) {
  std::string text;
  const auto shown = std::min<std::size_t>(values.size(), static_cast<std::size_t>(std::max(width, 0)));
  for (std::size_t i = values.size() - shown; i < values.size(); ++i) {
    const auto level = static_cast<std::size_t>(std::clamp(values[i] * 8, 0.0, 7.0));
    text += (unicode ? kUnicodeLevels : kAsciiLevels)[level];
  }
  return text;
}

struct Canvas {
  const ViewState& state;
  const Histories& histories;
  int columns;
  Translator translator;
  std::vector<ScreenLine> lines;

  void plain(const std::string& text, Style style = Style::kPlain) { lines.push_back({{text, style}}); }

  /// "  utilisation  62 %  ████████······  ▁▂▃▅▆█"; prints no line for an absent value.
  void gauge(const std::string& key, const std::string& label, const std::optional<double>& share,
             const std::string& note, bool judged) {
    if (!share) {
      return;
    }
    const std::string head =
        fmt::format("  {:<12}{:>5}  ", translator.word(label), fmt::format("{:.0f} %", *share * 100));
    const int room = columns - static_cast<int>(columns_of(head)) - static_cast<int>(columns_of(note)) - 4;
    const int bar_width = std::clamp(room / 2, 4, 30);
    const int line_width = std::max(0, room - bar_width);
    const Style style = judged ? style_of(*share) : Style::kPlain;
    lines.push_back({{head, Style::kPlain},
                     {bar(*share, bar_width, state.unicode), style},
                     {"  " + note + (note.empty() ? "" : "  "), Style::kPlain},
                     {sparkline(histories.of(key), line_width, state.unicode), style}});
  }
};

std::string of_most(const std::optional<double>& now, const std::optional<double>& most, const char* unit,
                    const Translator& translator) {
  return now && most ? translator.say("{:.0f} of {:.0f} {}", *now, *most, unit) : "";
}

std::optional<double> ratio(const std::optional<double>& now, const std::optional<double>& most) {
  return now && most && *most > 0 ? std::optional(std::min(1.0, *now / *most)) : std::nullopt;
}

void add_gpu(const GpuNow& gpu, Canvas& canvas) {
  const telemetry::GpuReading& now = gpu.reading;
  std::string facts = gpu.name;
  if (now.temperature_c) {
    facts += fmt::format("  {:.0f} C", *now.temperature_c);
  }
  if (now.sm_clock_mhz) {
    facts += fmt::format("  {:.0f} MHz", *now.sm_clock_mhz);
  }
  if (now.pcie_rx_bytes_s) {
    facts += canvas.translator.say("  in {}/s", format_bytes(static_cast<std::uint64_t>(*now.pcie_rx_bytes_s)));
  }
  canvas.lines.push_back({{gpu.subject, Style::kBold}, {"  " + facts, Style::kPlain}});
  canvas.gauge(gpu.subject + ".utilisation", "kernels ran", now.utilisation, "", true);
  canvas.gauge(gpu.subject + ".sm", "SMs active", now.sm_activity, "", true);
  if (const std::string_view why = gpu.why_busy_unknown(); !why.empty()) {
    canvas.plain("  " + canvas.translator.word(why), Style::kDim);
  }
  canvas.gauge(gpu.subject + ".tensor", "matrix units", now.tensor_activity, "", false);
  canvas.gauge(gpu.subject + ".power", "power", ratio(now.power_w, now.power_limit_w),
               of_most(now.power_w, now.power_limit_w, "W", canvas.translator), false);
  const auto used = now.memory_bytes ? format_bytes(static_cast<std::uint64_t>(*now.memory_bytes)) : "";
  canvas.gauge(gpu.subject + ".memory", "GPU memory", ratio(now.memory_bytes, gpu.memory_total_bytes), used, false);
  if (!now.utilisation && !now.sm_activity && !now.memory_bytes) {
    canvas.plain("  " + canvas.translator.say("it does not answer"), Style::kBad);
  }
  const std::string held = held_down_by(now, canvas.translator);
  if (!held.empty()) {
    canvas.plain("  " + canvas.translator.say("clocks held down: {}", held), Style::kMiddling);
  }
  if (gpu.xids > 0) {
    canvas.plain("  " + canvas.translator.say("{} critical error(s) (Xid)", gpu.xids), Style::kBad);
  }
  for (const telemetry::GpuProcess& process : gpu.processes) {
    canvas.plain(
        fmt::format("  pid {}{}{}", process.pid, process.used_bytes ? "  " + format_bytes(*process.used_bytes) : "",
                    process.share ? fmt::format("  {:.0f} %", *process.share * 100) : ""),
        Style::kDim);
  }
}

/// Ranks wait for the slowest one, so their rates are equal. What differs is how long each waits for its input.
void add_processes(std::vector<account::RecentProcess> processes, Canvas& canvas) {
  const std::size_t all = processes.size();
  std::erase_if(processes, [](const auto& each) { return !each.input_share; });
  if (processes.size() < 2) {
    return;
  }
  const auto [least, most] = std::ranges::minmax(processes, {}, &account::RecentProcess::input_share);
  canvas.lines.push_back({{canvas.translator.say("  {} processes train; input wait {} ({}) to {} ({})", all,
                                                 format_share(*least.input_share), least.process,
                                                 format_share(*most.input_share), most.process),
                           Style::kPlain}});
}

void add_run(const RunNow& run, Canvas& canvas) {
  std::string text = run.step ? canvas.translator.say("step {}", *run.step) : canvas.translator.say("no step yet");
  text += run.steps_per_s ? "  " + canvas.translator.say("{} steps/s", format_number(*run.steps_per_s)) : "";
  text += run.samples_per_s ? "  " + canvas.translator.say("{} samples/s", format_number(*run.samples_per_s)) : "";
  text += run.loss ? "  " + canvas.translator.say("loss {}", format_number(*run.loss)) : "";
  canvas.lines.push_back({{canvas.translator.word("run"), Style::kBold},
                          {"  " + run.folder.filename().string() + "  " + text, Style::kPlain}});
  if (run.input_share) {
    // A high value is bad here: the device waits.
    canvas.gauge("run.input", "input wait", run.input_share, "", false);
  }
  add_processes(run.processes, canvas);
}

std::vector<ProcessNow> sorted(std::vector<ProcessNow> processes, SortBy sort) {
  std::stable_sort(processes.begin(), processes.end(), [&](const ProcessNow& a, const ProcessNow& b) {
    switch (sort) {
      case SortBy::kCpu: return a.cpu.value_or(-1) > b.cpu.value_or(-1);
      case SortBy::kMemory: return a.rss_bytes > b.rss_bytes;
      case SortBy::kPid: return a.pid < b.pid;
      case SortBy::kRole: return a.role < b.role;
    }
    return false;
  });
  return processes;
}

void add_processes(const Snapshot& snapshot, Canvas& canvas) {
  if (snapshot.processes.empty()) {
    return;
  }
  const Translator& translator = canvas.translator;
  canvas.plain(fmt::format("{:>8}  {:<9} {:<10} {:>6} {:>9} {:>11}  {}", "PID", translator.word("ROLE"),
                           translator.word("STATE"), "CPU", translator.word("CPU WAIT"), translator.word("MEMORY"),
                           translator.word("NAME")),
               Style::kDim);
  for (const ProcessNow& process : sorted(snapshot.processes, canvas.state.sort)) {
    const std::string cpu = process.cpu ? fmt::format("{:.0f} %", *process.cpu * 100) : "";
    const std::string wait = process.run_delay ? fmt::format("{:.0f} %", *process.run_delay * 100) : "";
    canvas.plain(
        fmt::format("{:>8}  {:<9} {:<10} {:>6} {:>9} {:>11}  {}", process.pid,
                    translator.word(telemetry::to_string(process.role)), translator.word(state_name(process.state)),
                    cpu, wait, format_bytes(process.rss_bytes), process.name),
        process.state == 'D' ? Style::kMiddling : Style::kPlain);
  }
}

void add_cpu(const Snapshot& snapshot, Canvas& canvas) {
  const bool device = snapshot.gpus.empty();
  const double all = snapshot.pid ? snapshot.cpus_allowed : snapshot.cpus_online;
  const auto used = snapshot.cpu_used();
  const std::string note = used ? canvas.translator.say("{:.1f} of {}", *used, format_number(all)) : "";
  canvas.lines.push_back({{canvas.translator.word("cpu"), Style::kBold},
                          {snapshot.pid ? "  " + canvas.translator.say("of pid {} and its children", *snapshot.pid)
                                        : "  " + canvas.translator.say("of the whole machine"),
                           Style::kPlain}});
  canvas.gauge("cpu", "CPUs", snapshot.cpu_share(), note, device);
  for (const auto& [key, label] : {std::pair("host.cpu_pressure", "CPU wait"), {"host.io_pressure", "disk wait"}}) {
    if (const auto value = snapshot.host.find(key); value != snapshot.host.end() && value->second > 0.05) {
      canvas.gauge(key, label, std::min(value->second, 1.0), canvas.translator.say("of time some task"), false);
    }
  }
}

void add_help(Canvas& canvas) {
  canvas.plain(canvas.translator.word("Keys"), Style::kBold);
  for (const char* line : {"h, ?   this help", "s      sort processes: cpu, memory, pid, role",
                           "p      pause the display; the summary goes on", "q      quit, with a summary"}) {
    canvas.plain("  " + canvas.translator.word(line));
  }
  canvas.plain(canvas.translator.say("kernels ran: NVML's utilisation, the share of time in which any kernel ran"),
               Style::kDim);
  canvas.plain(canvas.translator.say("SMs active: how much of the device had work; needs Hopper or later"),
               Style::kDim);
  canvas.plain(canvas.translator.say("CPU wait of a process: ready to run, and no CPU was free"), Style::kDim);
}

ScreenLine clipped_line(const ScreenLine& line, std::size_t columns, bool unicode) {
  ScreenLine out;
  std::size_t room = columns;
  for (const Span& span : line) {
    const std::string text = clipped(span.text, room, unicode);
    room -= columns_of(text);
    out.push_back({text, span.style});
  }
  return out;
}

}  // namespace

std::string_view to_string(SortBy sort) {
  switch (sort) {
    case SortBy::kCpu: return "cpu";
    case SortBy::kMemory: return "memory";
    case SortBy::kPid: return "pid";
    case SortBy::kRole: return "role";
  }
  return "cpu";
}

SortBy next(SortBy sort) {
  return sort == SortBy::kRole ? SortBy::kCpu : static_cast<SortBy>(static_cast<int>(sort) + 1);
}

void Histories::push(const std::string& key, const std::optional<double>& value) {
  if (value) {
    std::deque<double>& values = values_[key];
    values.push_back(*value);
    if (values.size() > kHistory) {
      values.pop_front();
    }
  }
}

void Histories::add(const Snapshot& snapshot) {
  for (const GpuNow& gpu : snapshot.gpus) {
    push(gpu.subject + ".utilisation", gpu.reading.utilisation);
    push(gpu.subject + ".sm", gpu.reading.sm_activity);
    push(gpu.subject + ".tensor", gpu.reading.tensor_activity);
    push(gpu.subject + ".power", ratio(gpu.reading.power_w, gpu.reading.power_limit_w));
    push(gpu.subject + ".memory", ratio(gpu.reading.memory_bytes, gpu.memory_total_bytes));
  }
  push("cpu", snapshot.cpu_share());
  if (snapshot.run) {
    push("run.input", snapshot.run->input_share);
  }
}

const std::deque<double>& Histories::of(const std::string& key) const {
  static const std::deque<double> kNone;
  const auto found = values_.find(key);
  return found != values_.end() ? found->second : kNone;
}

std::vector<ScreenLine> layout(const Snapshot& snapshot, const Histories& histories, const ViewState& state, int rows,
                               int columns) {
  Canvas canvas{state, histories, columns, {state.language}, {}};
  canvas.lines.push_back(
      {{"unidle monitor", Style::kBold},
       {"  " + canvas.translator.say("{}  h help  s sort: {}  p {}  q quit", format_utc(snapshot.wall_ns).substr(11, 8),
                                     canvas.translator.word(to_string(state.sort)),
                                     canvas.translator.word(state.paused ? "PAUSED" : "pause")),
        Style::kDim}});
  if (state.help) {
    add_help(canvas);
  }
  if (!snapshot.gpus_known) {
    canvas.plain(canvas.translator.say("There is a GPU driver that does not answer: unidle check says why."),
                 Style::kBad);
  }
  for (const GpuNow& gpu : snapshot.gpus) {
    add_gpu(gpu, canvas);
  }
  add_cpu(snapshot, canvas);
  if (snapshot.run) {
    add_run(*snapshot.run, canvas);
  }
  add_processes(snapshot, canvas);
  std::vector<ScreenLine> lines;
  for (const ScreenLine& line : canvas.lines) {
    if (static_cast<int>(lines.size()) < rows) {
      lines.push_back(clipped_line(line, static_cast<std::size_t>(std::max(columns, 0)), state.unicode));
    }
  }
  return lines;
}

}  // namespace unidle::monitor
