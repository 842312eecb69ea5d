#include "unidle/monitor/live_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/units.h"
#include "unidle/language/translator.h"
#include "unidle/monitor/lines.h"
#include "unidle/monitor/live_script.h"
#include "unidle/report/page/document.h"
#include "unidle/report/page/html.h"
#include "unidle/report/page/opening.h"
#include "unidle/report/page/plot.h"

namespace unidle::monitor {

namespace {

using report::element;
using report::Html;

constexpr std::size_t kMostProcesses = 40;
constexpr double kPercent = 100;
constexpr double kSecondsPerMinute = 60;
constexpr double kLeastAxis_s = 10;
constexpr double kAxisInMinutes_s = 600;
const std::string kNothing = "\u2013";

std::string share_or_nothing(const std::optional<double>& share) { return share ? format_share(*share) : kNothing; }

std::string bytes_of(double bytes) { return format_bytes(static_cast<std::uint64_t>(std::max(0.0, bytes))); }

std::vector<report::Tile> tiles_of(const Snapshot& now, const Translator& translator) {
  std::vector<report::Tile> tiles;
  if (now.run) {
    const RunNow& run = *now.run;
    if (run.samples_per_s) {
      tiles.push_back({format_number(*run.samples_per_s), translator.word("samples/s")});
    }
    if (run.steps_per_s) {
      tiles.push_back({format_number(*run.steps_per_s), translator.word("steps/s")});
    }
    if (run.input_share) {
      tiles.push_back({format_share(*run.input_share), translator.say("of each step waits for input")});
    }
    if (run.step) {
      tiles.push_back({std::to_string(*run.step), translator.say("steps so far")});
    }
    if (run.loss) {
      tiles.push_back({format_number(*run.loss), translator.say("loss, as last noted")});
    }
  }
  for (const GpuNow& gpu : now.gpus) {
    if (gpu.reading.utilisation) {
      tiles.push_back({format_share(*gpu.reading.utilisation), translator.say("{}: kernels ran", gpu.subject)});
    }
  }
  if (const auto used = now.cpu_used()) {
    tiles.push_back({translator.say("{:.1f} of {}", *used, format_number(now.pid ? now.cpus_allowed : now.cpus_online)),
                     translator.say("CPUs in use")});
  }
  return tiles;
}

/// The whole session, in seconds or minutes before now.
struct TimeAxis {
  double unit_s = 1;
  report::Axis axis;

  report::Line line(const Course& course, const std::string& key, double factor) const {
    report::Line points = course.line(key);
    for (auto& [t, value] : points) {
      t /= unit_s;
      value *= factor;
    }
    return points;
  }
};

TimeAxis axis_of(const Course& course, const Translator& translator) {
  const double length_s = std::max(kLeastAxis_s, course.length_s());
  const bool in_minutes = length_s > kAxisInMinutes_s;
  TimeAxis made;
  made.unit_s = in_minutes ? kSecondsPerMinute : 1;
  made.axis = {-length_s / made.unit_s, 0,
               in_minutes ? translator.say("minutes (0 is now)") : translator.say("seconds (0 is now)"),
               in_minutes ? "min" : "s"};
  return made;
}

report::Panel panel_of_rate(const Course& course, const TimeAxis& time, const Translator& translator) {
  report::Panel panel;
  panel.id = "rate";
  panel.title = translator.word("Throughput");
  const bool samples = !course.line("run.samples_per_s").empty();
  panel.unit = samples ? translator.word("samples/s") : translator.word("steps/s");
  panel.description = panel.title;
  panel.low = 0;
  panel.lines.push_back(
      {panel.title, "run1", time.line(course, samples ? "run.samples_per_s" : "run.steps_per_s", 1), {}, false, true});
  return panel;
}

/// How busy the devices are: GPUs, where there are some, beside the CPUs.
report::Panel panel_of_devices(const LiveState& state, const TimeAxis& time, const Translator& translator) {
  static constexpr std::array<const char*, 7> kColours = {"gpu",  "validate", "input",     "transfer",
                                                          "sync", "run0",     "checkpoint"};
  report::Panel panel;
  panel.id = "busy";
  panel.title = state.now.gpus.empty() ? translator.word("CPUs") : translator.word("Devices");
  panel.unit = "%";
  panel.description = panel.title;
  panel.low = 0;
  panel.high = kPercent;
  for (std::size_t i = 0; i < state.now.gpus.size(); ++i) {
    const std::string& subject = state.now.gpus[i].subject;
    panel.lines.push_back({subject, kColours.at(i % kColours.size()), time.line(state.course, subject, kPercent)});
  }
  panel.lines.push_back({"CPU", "cpu", time.line(state.course, "cpu", kPercent), {}, false, state.now.gpus.empty()});
  return panel;
}

report::Panel panel_of_input(const Course& course, const TimeAxis& time, const Translator& translator) {
  report::Panel panel;
  panel.id = "wait";
  panel.title = report::with_capital(translator.word("input wait"));
  panel.unit = translator.say("% of each step");
  panel.description = panel.title;
  panel.low = 0;
  panel.high = kPercent;
  panel.lines.push_back({panel.title, "input", time.line(course, "run.input_share", kPercent), {}, false, true});
  return panel;
}

report::Panel panel_of_loss(const Course& course, const TimeAxis& time, const Translator& translator) {
  report::Panel panel;
  panel.id = "loss";
  panel.title = translator.word("Loss");
  panel.description = panel.title;
  panel.lines.push_back({panel.title, "run0", time.line(course, "run.loss", 1)});
  return panel;
}

Html plots(const LiveState& state, const Translator& translator) {
  const TimeAxis time = axis_of(state.course, translator);
  return report::plot(translator.say("Since this page's monitor began"), "",
                      {panel_of_rate(state.course, time, translator), panel_of_devices(state, time, translator),
                       panel_of_input(state.course, time, translator), panel_of_loss(state.course, time, translator)},
                      time.axis, report::Width::kFull);
}

Html devices(const Snapshot& now, const Translator& translator) {
  std::vector<std::vector<std::string>> rows;
  for (const GpuNow& gpu : now.gpus) {
    const telemetry::GpuReading& reading = gpu.reading;
    const std::string most = gpu.memory_total_bytes ? bytes_of(*gpu.memory_total_bytes) : "";
    const std::string memory = !reading.memory_bytes ? kNothing
                               : most.empty()        ? bytes_of(*reading.memory_bytes)
                                              : translator.say("{} of {}", bytes_of(*reading.memory_bytes), most);
    const std::string held = held_down_by(reading, translator);
    rows.push_back({gpu.subject + "  " + gpu.name, share_or_nothing(reading.utilisation),
                    share_or_nothing(reading.sm_activity), memory,
                    reading.power_w ? fmt::format("{:.0f} W", *reading.power_w) : kNothing,
                    reading.temperature_c ? fmt::format("{:.0f} C", *reading.temperature_c) : kNothing,
                    held.empty() ? kNothing : held});
  }
  return report::section(
      translator.word("Devices"),
      report::table(translator.word("Devices"),
                    {translator.word("device"), translator.word("kernels ran"), translator.word("SMs active"),
                     translator.word("GPU memory"), translator.word("power"), translator.word("temperature"),
                     translator.say("clocks held down by")},
                    rows));
}

Html ranks(const Snapshot& now, const Translator& translator) {
  std::vector<std::vector<std::string>> rows;
  for (const account::RecentProcess& each : now.run ? now.run->processes : std::vector<account::RecentProcess>{}) {
    rows.push_back({std::to_string(each.process), share_or_nothing(each.input_share)});
  }
  return rows.size() < 2
             ? Html()
             : report::section(translator.say("Processes that train"),
                               report::table(translator.say("Processes that train"),
                                             {translator.word("PID"), translator.word("input wait")}, rows));
}

Html processes(const Snapshot& now, const Translator& translator) {
  std::vector<ProcessNow> all = now.processes;
  std::ranges::stable_sort(all, std::ranges::greater(), [](const ProcessNow& each) { return each.cpu.value_or(-1); });
  const std::size_t left_out = all.size() - std::min(all.size(), kMostProcesses);
  all.resize(all.size() - left_out);
  std::vector<std::vector<std::string>> rows;
  for (const ProcessNow& each : all) {
    rows.push_back({std::to_string(each.pid), translator.word(telemetry::to_string(each.role)),
                    translator.word(state_name(each.state)), share_or_nothing(each.cpu),
                    share_or_nothing(each.run_delay), format_bytes(each.rss_bytes), each.name});
  }
  const Html more = left_out > 0 ? element("p.quiet", translator.say("and {} more", left_out)) : Html();
  const Html shown = report::table(translator.word("Processes"),
                                   {translator.word("PID"), translator.word("ROLE"), translator.word("STATE"), "CPU",
                                    translator.word("CPU WAIT"), translator.word("MEMORY"), translator.word("NAME")},
                                   rows);
  return report::section(translator.word("Processes"), shown + more);
}

}  // namespace

std::string live_content(const LiveState& state, Language language) {
  const Translator translator{language};
  const Snapshot& now = state.now;
  if (now.t_ns == 0) {
    return element("p", translator.say("Waiting for the first reading.")).markup;
  }
  const std::string name = now.run ? now.run->folder.filename().string() : translator.say("no run is under way");
  Html out = element("header", element("p.brand", element("b", "unidle monitor"), " ", name),
                     element("h1", report::with_capital(state.verdict)),
                     element("p.quiet", translator.say("{} UTC", format_utc(now.wall_ns).substr(11, 8))));
  if (!now.gpus_known) {
    out += element("p.caution", translator.say("There is a GPU driver that does not answer: unidle check says why."));
  }
  out += report::tiles_html(tiles_of(now, translator)) + plots(state, translator) + devices(now, translator) +
         ranks(now, translator) + processes(now, translator);
  return out.markup;
}

std::string live_document(const LiveState& state, Language language) {
  const Translator translator{language};
  const std::string lost = translator.say("The monitor has stopped: these figures do not move any more.");
  return report::document({.title = "unidle monitor",
                           .content = Html{live_content(state, language)},
                           .whole = translator.say("Show all"),
                           .script = live_script(),
                           .lost = lost},
                          language);
}

}  // namespace unidle::monitor
