#include "unidle/report/page/over_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "unidle/base/units.h"
#include "unidle/report/page/activity.h"
#include "unidle/report/page/curves.h"

namespace unidle::report {

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr std::size_t kMostLanes = 16;

double longest_s(const std::vector<Shown>& runs) {
  double length = 0;
  for (const Shown& shown : runs) {
    length = std::max(length, shown.account.timeline.wall_s());
  }
  return length;
}

Axis time_axis(double length_s, const TimeUnit& unit, const Translator& translator) {
  return {0, length_s > 0 ? length_s / unit.seconds : 1, translator.say("wall time ({})", unit.name), unit.name};
}

bool is_value(const std::pair<double, double>& point) { return std::isfinite(point.second); }

/// "Throughput: superres ends at 12.3 (samples/s);"
std::string ends_of(const Panel& panel, const Translator& translator) {
  std::string words = panel.title + translator.word(":");
  for (const PlotLine& line : panel.lines) {
    const auto last = std::find_if(line.points.rbegin(), line.points.rend(), is_value);
    if (last != line.points.rend()) {
      words += translator.say(" {} ends at {} ({});", line.name, format_number(last->second), panel.unit);
    }
  }
  return words;
}

Panel titled(const std::string& id, const std::string& title, const std::string& unit) {
  Panel panel;
  panel.id = id;
  panel.title = title;
  panel.unit = unit;
  return panel;
}

void drop_empty_lines(Panel& panel) {
  std::erase_if(panel.lines, [](const PlotLine& line) { return std::ranges::none_of(line.points, is_value); });
}

/// The panels of runs over one time axis.
class TimePanels {
 public:
  TimePanels(const std::vector<Shown>& runs, const Translator& translator)
      : runs_(runs), translator_(translator), length_s_(longest_s(runs)), unit_(time_unit(length_s_)) {}

  Panel throughput() const {
    Panel panel = titled("throughput", translator_.word("Throughput"), translator_.say("samples/s while training"));
    panel.low = 0;
    for (const Shown& shown : runs_) {
      panel.lines.push_back({shown.run->name, shown.css, throughput_line(shown, length_s_, unit_.seconds)});
    }
    if (runs_.size() == 1) {
      panel.lines.front().name = translator_.word("Throughput");
      panel.lines.front().filled = true;
    }
    return finish(panel);
  }

  std::vector<Panel> activities() const {
    std::vector<Panel> panels;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const Shown& shown = runs_[i];
      Panel panel = titled(fmt::format("timeline{}", i),
                           runs_.size() > 1 ? translator_.say("{}: where the time went", shown.run->name)
                                            : translator_.say("Where the time went"),
                           translator_.say("% of the time"));
      panel.css = "tall";
      panel.low = 0;
      panel.high = 100;
      panel.layers = activity_layers(shown.account, length_s_, translator_);
      panel.description = activity_words(shown.account, translator_);
      panels.push_back(std::move(panel));
    }
    return panels;
  }

  /// Of one run in one panel.
  Panel busy() const {
    Panel panel = titled("busy", translator_.say("Device and CPUs busy"), translator_.say("% busy"));
    panel.lines = {{"GPU", "gpu", gpu(runs_.front())},
                   {translator_.say("CPUs of those allowed"), "cpu", cpu(runs_.front())}};
    drop_empty_lines(panel);
    if (panel.lines.size() == 1) {
      const bool gpu_alone = panel.lines.front().css == "gpu";
      panel.title = gpu_alone ? translator_.say("GPU busy") : translator_.say("CPUs busy");
      panel.unit = gpu_alone ? translator_.say("% of the time") : translator_.say("% of the CPUs allowed");
      panel.lines.front().name = panel.title;
      panel.lines.front().filled = true;
    }
    panel.low = 0;
    panel.high = 100;
    return finish(panel);
  }

  Panel of_each(const std::string& id, const std::string& title, const std::string& unit,
                Line (TimePanels::*make)(const Shown&) const, std::optional<double> high = std::nullopt) const {
    Panel panel = titled(id, title, unit);
    panel.low = 0;
    panel.high = high;
    for (const Shown& shown : runs_) {
      panel.lines.push_back({shown.run->name, shown.css, (this->*make)(shown)});
    }
    return finish(panel);
  }

  Line gpu(const Shown& shown) const { return series_line(shown, record::series::kGpuUtil, 100, unit_.seconds); }
  Line cpu(const Shown& shown) const {
    const double allowed = shown.account.cpus_allowed.now.value_or(0);
    return allowed > 0 ? series_line(shown, record::series::kTreeCpu, 100 / allowed, unit_.seconds) : Line();
  }
  /// Without the number of CPUs allowed, only cores in use can be shown.
  Line cores(const Shown& shown) const {
    return shown.account.cpus_allowed.now.value_or(0) > 0
               ? Line()
               : series_line(shown, record::series::kTreeCpu, 1, unit_.seconds);
  }
  Line gpu_memory(const Shown& shown) const {
    return series_line(shown, record::series::kGpuMemory, 1 / kGiB, unit_.seconds);
  }
  Line gpu_power(const Shown& shown) const { return series_line(shown, record::series::kGpuPower, 1, unit_.seconds); }

  Axis axis() const { return time_axis(length_s_, unit_, translator_); }

 private:
  Panel finish(Panel panel) const {
    drop_empty_lines(panel);
    if (runs_.size() == 1) {
      panel.bands = phase_bands(runs_.front().account, length_s_, unit_.seconds, translator_);
    }
    panel.description = ends_of(panel, translator_);
    return panel;
  }

  const std::vector<Shown>& runs_;
  Translator translator_;
  double length_s_;
  TimeUnit unit_;
};

double most_samples(const std::vector<PlotLine>& lines) {
  double most = 0;
  for (const PlotLine& line : lines) {
    for (const auto& point : line.points) {
      most = std::max(most, point.first);
    }
  }
  return most > 0 ? most : 1;
}

/// A figure over the samples seen.
Html over_samples(Panel panel, const Translator& translator) {
  const std::string title = panel.title;
  drop_empty_lines(panel);
  panel.description = ends_of(panel, translator);
  const Axis axis{0, most_samples(panel.lines), translator.say("samples seen"), translator.word("samples")};
  return plot(title, "", {panel}, axis, Width::kHalf);
}

std::string unit_of_metric(const std::string& name) { return name == "psnr" || name == "val_psnr" ? "dB" : ""; }

/// The steps of one training process as a run of their own.
struct Rank {
  std::string name;
  std::int64_t process;
  account::RunData run;
};

std::vector<Rank> ranks_of(const Shown& shown, const Translator& translator) {
  std::map<std::int64_t, std::vector<record::Step>> steps;
  for (const record::Step& step : shown.run->steps) {
    steps[step.process].push_back(step);
  }
  std::vector<Rank> ranks;
  for (auto& [process, of_process] : steps) {
    const auto& known = shown.account.ranks;
    const auto rank =
        std::find_if(known.begin(), known.end(), [p = process](const auto& each) { return each.process == p; });
    std::string name = rank == known.end() ? translator.say("process {}", process)
                       : rank->wait_s      ? translator.say("rank {}, waits {} of each step for the others", rank->rank,
                                                            format_share(*rank->wait_s / rank->step_s))
                                           : translator.say("rank {}", rank->rank);
    ranks.push_back({std::move(name), process, {}});
    ranks.back().run.steps = std::move(of_process);
    ranks.back().run.meta = shown.run->meta;
    std::copy_if(shown.run->spans.begin(), shown.run->spans.end(), std::back_inserter(ranks.back().run.spans),
                 [p = process](const record::Span& span) { return span.process == p; });
    if (ranks.size() == kMostLanes) {
      break;
    }
  }
  return ranks;
}

std::vector<std::string> gpus_of(const account::RunData& run) {
  std::vector<std::string> subjects;
  for (const auto& [series, points] : run.series) {
    if (series.name == record::series::kGpuUtil && !points.empty() && subjects.size() < kMostLanes) {
      subjects.push_back(series.subject);
    }
  }
  return subjects;
}

}  // namespace

Html over_time(const std::vector<Shown>& runs, const Translator& translator) {
  if (runs.empty()) {
    return {};
  }
  const TimePanels make(runs, translator);
  std::vector<Panel> panels = {make.throughput()};
  std::ranges::move(make.activities(), std::back_inserter(panels));
  if (runs.size() == 1) {
    panels.push_back(make.busy());
  } else {
    panels.push_back(
        make.of_each("gpubusy", translator.say("GPU busy"), translator.say("% of the time"), &TimePanels::gpu, 100));
    panels.push_back(make.of_each("cpubusy", translator.say("CPUs busy"), translator.say("% of the CPUs allowed"),
                                  &TimePanels::cpu, 100));
  }
  panels.push_back(
      make.of_each("cores", translator.say("CPU cores in use"), translator.word("cores"), &TimePanels::cores));
  return plot(translator.say("The run over time"), "", panels, make.axis(), Width::kFull);
}

Html small_plots(const std::vector<Shown>& runs, const Translator& translator) {
  if (runs.empty()) {
    return {};
  }
  const TimePanels make(runs, translator);
  Html out;
  for (const Panel& panel :
       {make.of_each("gpumemory", translator.say("GPU memory in use"), "GiB", &TimePanels::gpu_memory),
        make.of_each("gpupower", translator.say("GPU power"), "W", &TimePanels::gpu_power)}) {
    out += plot(panel.title, "", {panel}, make.axis(), Width::kHalf);
  }
  Panel loss = titled("loss", translator.say("Training loss"), translator.say("loss, smoothed"));
  std::ranges::transform(runs, std::back_inserter(loss.lines), loss_line);
  out += over_samples(loss, translator);
  std::size_t number = 0;
  for (const std::string& name : metric_names(runs)) {
    Panel metric = titled(fmt::format("metric{}", number++), name, unit_of_metric(name));
    for (const Shown& shown : runs) {
      metric.lines.push_back(metric_line(shown, name));
    }
    out += over_samples(metric, translator);
  }
  return out;
}

Html lanes(const Shown& shown, const Translator& translator) {
  const double length_s = shown.account.timeline.wall_s();
  const TimeUnit unit = time_unit(length_s);
  std::vector<Panel> panels;
  const std::vector<Rank> ranks = ranks_of(shown, translator);
  for (const Rank& rank : ranks) {
    Panel panel = titled(fmt::format("rank{}", panels.size()), rank.name, translator.say("% of the time"));
    panel.css = "low";
    panel.low = 0;
    panel.high = 100;
    const account::Account account = account::account_of(rank.run);
    panel.layers = activity_layers(account, length_s, translator);
    panel.description = activity_words(account, translator);
    panels.push_back(std::move(panel));
  }
  if (ranks.size() < 2) {
    panels.clear();
  }
  const std::vector<std::string> gpus = gpus_of(*shown.run);
  for (std::size_t i = 0; gpus.size() > 1 && i < gpus.size(); ++i) {
    Panel panel = titled(fmt::format("lanegpu{}", i), gpus[i], translator.say("% busy"));
    panel.css = "low";
    panel.low = 0;
    panel.high = 100;
    panel.lines = {{gpus[i], "gpu", series_line(shown, record::series::kGpuUtil, 100, unit.seconds, gpus[i])}};
    panel.lines.front().filled = true;
    panel.description = ends_of(panel, translator);
    panels.push_back(std::move(panel));
  }
  return plot(translator.say("Each process and device"), "", panels, time_axis(length_s, unit, translator),
              Width::kFull);
}

}  // namespace unidle::report
