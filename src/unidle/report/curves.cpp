#include "unidle/report/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "unidle/base/units.h"
#include "unidle/report/learning.h"
#include "unidle/report/timeline.h"

namespace unidle::report {

namespace {

constexpr std::size_t kMostPoints = 240;
constexpr std::size_t kThroughputBins = 80;
constexpr double kGiB = 1024.0 * 1024 * 1024;

Line series_line(const Shown& shown, std::string_view name, double scale, const TimeUnit& unit) {
  Line line;
  for (const auto* points : shown.run->points(name)) {
    for (const auto& point : *points) {
      line.emplace_back(shown.since_start(point.t_ns) / unit.seconds, point.value * scale);
    }
  }
  std::stable_sort(line.begin(), line.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return thinned(line, kMostPoints);
}

/// Samples of steps over wall time, so that the cost of validation and waiting shows.
Line throughput_line(const Shown& shown, double length_s, const TimeUnit& unit) {
  const double width = length_s / kThroughputBins;
  if (shown.account.periods.empty() || !(width > 0)) {
    return {};
  }
  std::vector<double> samples(kThroughputBins, 0.0);
  for (const account::Period& period : shown.account.periods) {
    const double from = shown.since_start(period.begin_ns);
    const double to = from + period.wall_s;
    if (!(to > from)) {
      continue;  // a step without duration cannot be placed
    }
    const auto bin = [&](double at) {
      return static_cast<std::size_t>(std::clamp(std::floor(at / width), 0.0, kThroughputBins - 1.0));
    };
    for (std::size_t i = bin(from); i <= bin(to); ++i) {
      const double begin = static_cast<double>(i) * width;
      const double overlap = std::min(to, begin + width) - std::max(from, begin);
      samples[i] += period.samples * std::max(0.0, overlap) / (to - from);
    }
  }
  Line line;
  const double end = std::min(length_s, shown.account.timeline.wall_s());
  for (std::size_t i = 0; i < kThroughputBins && static_cast<double>(i) * width < end; ++i) {
    line.emplace_back((static_cast<double>(i) + 0.5) * width / unit.seconds, samples[i] / width);
  }
  return line;
}

/// CPUs allowed to the run; 0 when unknown.
double cpus(const Shown& shown) { return shown.account.cpus_allowed.now.value_or(0); }

Line as_line(const account::Curve& curve) {
  Line line;
  for (const account::CurvePoint& point : curve) {
    line.emplace_back(point.samples, point.value);
  }
  return line;
}

ChartLine loss_line(const account::Curve& raw) {
  ChartLine line;
  if (!raw.empty()) {
    const double width = (raw.back().samples - raw.front().samples) / 25;
    line.points = thinned(as_line(experiment::smooth(raw, width)), kMostPoints);
    line.raw = thinned(as_line(raw), kMostPoints);
  }
  return line;
}

class ChartMaker {
 public:
  ChartMaker(const std::vector<Shown>& runs, double length_s, const Translator& translator)
      : runs_(runs), length_s_(length_s), translator_(translator), unit_(time_unit(length_s)) {}

  /// Adds a chart with one line per run, leaving out runs without points; adds none when no run has any.
  void add(const std::string& id, const std::string& title, const std::string& x_label, const std::string& y_label,
           const std::function<ChartLine(const Shown&)>& make, std::optional<double> y_low = std::nullopt,
           std::optional<double> y_high = std::nullopt) {
    Chart chart;
    chart.id = id;
    chart.title = title;
    chart.x_label = x_label;
    chart.y_label = y_label;
    chart.y_low = y_low;
    chart.y_high = y_high;
    for (const Shown& shown : runs_) {
      ChartLine line = make(shown);
      if (!line.points.empty()) {
        line.label = shown.run->name;
        line.css = line.css.empty() ? shown.css : line.css;
        chart.lines.push_back(std::move(line));
      }
    }
    finish(std::move(chart));
  }

  void add_over_time(const std::string& id, const std::string& title, const std::string& y_label,
                     const std::function<Line(const Shown&)>& make, std::optional<double> y_high = std::nullopt) {
    add(
        id, title, time_label(), y_label,
        [&](const Shown& shown) {
          ChartLine line;
          line.points = make(shown);
          return line;
        },
        0.0, y_high);
  }

  /// GPU and CPUs of one run in one picture, or one picture each for several runs.
  void add_busy() {
    const auto gpu = [&](const Shown& s) { return series_line(s, record::series::kGpuUtil, 100, unit_); };
    const auto cpu = [&](const Shown& s) {
      return cpus(s) > 0 ? series_line(s, record::series::kTreeCpu, 100 / cpus(s), unit_) : Line();
    };
    if (runs_.size() > 1) {
      add_over_time("gpubusy", translator_.say("GPU busy"), translator_.say("% of the time"), gpu, 100);
      add_over_time("cpubusy", translator_.say("CPUs busy"), translator_.say("% of the CPUs allowed"), cpu, 100);
    } else if (!runs_.empty()) {
      Chart chart{
          "busy", translator_.say("Device and CPUs busy"), "", time_label(), translator_.say("% busy"), {}, 0.0, 100.0,
          {}};
      chart.lines.push_back({"GPU", "gpu", gpu(runs_.front()), {}, false});
      chart.lines.push_back({translator_.say("CPUs of those allowed"), "cpu", cpu(runs_.front()), {}, false});
      std::erase_if(chart.lines, [](const ChartLine& line) { return line.points.empty(); });
      if (chart.lines.size() == 1) {
        const bool gpu_alone = chart.lines.front().css == "gpu";
        chart.title = gpu_alone ? translator_.say("GPU busy") : translator_.say("CPUs busy");
        chart.y_label = gpu_alone ? translator_.say("% of the time") : translator_.say("% of the CPUs allowed");
      }
      finish(std::move(chart));
    }
    // Without the number of CPUs allowed, only cores in use can be shown.
    add_over_time("cores", translator_.say("CPU cores in use"), translator_.word("cores"), [&](const Shown& s) {
      return cpus(s) > 0 ? Line() : series_line(s, record::series::kTreeCpu, 1, unit_);
    });
  }

  const TimeUnit& unit() const { return unit_; }
  std::vector<Chart> take() { return std::move(charts_); }

 private:
  std::string time_label() const { return translator_.say("wall time ({})", unit_.name); }

  void finish(Chart chart) {
    if (chart.empty()) {
      return;
    }
    if (chart.x_label == time_label()) {
      chart.x_high = length_s_ / unit_.seconds;
    }
    chart.description = chart.title + translator_.word(":");
    for (const ChartLine& line : chart.lines) {
      const auto& last = line.points.back();
      chart.description +=
          translator_.say(" {} ends at {} ({});", line.label, format_number(last.second), chart.y_label);
    }
    charts_.push_back(std::move(chart));
  }

  const std::vector<Shown>& runs_;
  double length_s_;
  Translator translator_;
  TimeUnit unit_;
  std::vector<Chart> charts_;
};

std::set<std::string> metric_names(const std::vector<Shown>& runs) {
  std::set<std::string> names;
  for (const Shown& shown : runs) {
    for (const auto& [name, values] : shown.run->metrics) {
      if (name != "loss" && !values.empty()) {
        names.insert(name);
      }
    }
  }
  return names;
}

std::string unit_of_metric(const std::string& name) { return name == "psnr" || name == "val_psnr" ? "dB" : name; }

}  // namespace

Line thinned(const Line& points, std::size_t most) {
  if (points.size() <= most || most == 0) {
    return points;
  }
  const double from = points.front().first;
  const double width = (points.back().first - from) / static_cast<double>(most);
  Line out;
  for (std::size_t i = 0; i < points.size();) {
    const double bin = width > 0 ? std::floor((points[i].first - from) / width) : 0;
    double x = 0;
    double y = 0;
    std::size_t count = 0;
    for (; i < points.size() && (width > 0 ? std::floor((points[i].first - from) / width) : 0) <= bin; ++i, ++count) {
      x += points[i].first;
      y += points[i].second;
    }
    out.emplace_back(x / static_cast<double>(count), y / static_cast<double>(count));
  }
  return out;
}

std::vector<Chart> charts(const std::vector<Shown>& runs, double length_s, const Translator& translator) {
  ChartMaker maker(runs, length_s, translator);
  const TimeUnit unit = maker.unit();
  maker.add_over_time("throughput", translator.word("Throughput"),
                      translator.say("samples/s, training steps over wall time"),
                      [&](const Shown& s) { return throughput_line(s, length_s, unit); });
  maker.add_busy();
  maker.add_over_time("gpumemory", translator.say("GPU memory in use"), "GiB",
                      [&](const Shown& s) { return series_line(s, record::series::kGpuMemory, 1 / kGiB, unit); });
  maker.add_over_time("gpupower", translator.say("GPU power"), "W",
                      [&](const Shown& s) { return series_line(s, record::series::kGpuPower, 1, unit); });
  maker.add("loss", translator.say("Training loss"), translator.say("samples seen"), translator.say("loss, smoothed"),
            [](const Shown& s) { return loss_line(s.account.losses.points); });
  std::size_t number = 0;
  for (const std::string& name : metric_names(runs)) {
    maker.add(fmt::format("metric{}", number++), name, translator.say("samples seen"), unit_of_metric(name),
              [&](const Shown& s) {
                ChartLine line;
                if (const auto found = s.run->metrics.find(name); found != s.run->metrics.end()) {
                  line.points = thinned(as_line(account::metric_curve(found->second)), kMostPoints);
                }
                line.dots = line.points.size() <= 40;
                return line;
              });
  }
  return maker.take();
}

}  // namespace unidle::report
