#include "unidle/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace unidle::report {

namespace {

constexpr double kUnitsPerTick = 62;
constexpr int kVerticalTicks = 6;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void see(double value) {
    if (std::isfinite(value)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  bool empty() const { return low > high; }
};

bool finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

Range x_range(const Chart& chart) {
  Range range;
  range.see(0);
  for (const ChartLine& line : chart.lines) {
    for (const auto& point : line.points) {
      range.see(point.first);
    }
  }
  if (chart.x_high) {
    range.high = *chart.x_high;
  }
  if (range.high <= range.low) {
    range.high = range.low + 1;
  }
  return range;
}

Range y_range(const Chart& chart) {
  Range range;
  for (const ChartLine& line : chart.lines) {
    for (const auto& point : line.points) {
      range.see(point.second);
    }
  }
  if (range.empty()) {
    range = {0, 1};
  }
  const double spread = range.high - range.low;
  const double pad = spread > 0 ? spread * 0.08 : std::max(std::abs(range.high) * 0.1, 1e-9);
  range.low = chart.y_low.value_or(range.low - pad);
  range.high = chart.y_high.value_or(range.high + pad);
  if (!std::isfinite(range.low) || !std::isfinite(range.high) || range.high <= range.low) {
    range = {range.low, range.low + std::max(1.0, std::abs(range.low))};
  }
  return range;
}

Line placed(const Line& points, const Scale& x, const Scale& y) {
  Line out;
  for (const auto& point : points) {
    if (finite(point)) {
      out.emplace_back(x.at(point.first), y.at(point.second));
    }
  }
  return out;
}

/// The width of the longest label of the vertical axis, equal for most plots, so that they line up.
double label_width(double low, double high) {
  const std::vector<double> ticks = nice_ticks(low, high, kVerticalTicks);
  std::size_t longest = 0;
  for (const double tick : ticks) {
    longest = std::max(longest, tick_label(tick, ticks.size() > 1 ? ticks[1] - ticks[0] : 0).size());
  }
  return std::max(46.0, 7.5 * static_cast<double>(longest) + 10);
}

std::string draw_chart(const Chart& chart, double width, const char* suffix) {
  const double height = width < kHalfWidth ? 220 : 240;
  const Range x_values = x_range(chart);
  const Range y_values = y_range(chart);
  const Frame frame{label_width(y_values.low, y_values.high), width - 10, 26, height - 38};
  const Scale x{x_values.low, x_values.high, frame.left, frame.right};
  const Scale y{y_values.low, y_values.high, frame.bottom, frame.top};
  Svg svg(width, height, chart.id + suffix, chart.title, chart.description);
  draw_y_axis(svg, frame, y, chart.y_label);
  draw_x_axis(svg, frame, x, chart.x_label);
  for (const ChartLine& line : chart.lines) {
    svg.path(placed(line.raw, x, y), "raw " + line.css);
  }
  for (const ChartLine& line : chart.lines) {
    const Line points = placed(line.points, x, y);
    svg.path(points, "line " + line.css);
    if (line.dots || points.size() == 1) {
      for (const auto& [px, py] : points) {
        svg.dot(px, py, 3, "dot " + line.css);
      }
    }
  }
  return svg.str();
}

}  // namespace

bool Chart::empty() const {
  return std::none_of(lines.begin(), lines.end(), [](const ChartLine& line) {
    return std::any_of(line.points.begin(), line.points.end(), finite);
  });
}

void draw_x_axis(Svg& svg, const Frame& frame, const Scale& x, const std::string& label) {
  svg.line(frame.left, frame.bottom, frame.right, frame.bottom, "axis");
  const auto most = std::max(2, static_cast<int>((frame.right - frame.left) / kUnitsPerTick) + 1);
  const std::vector<double> ticks = nice_ticks(x.from, x.to, most);
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 0;
  for (const double tick : ticks) {
    const double at = x.at(tick);
    svg.line(at, frame.bottom, at, frame.bottom + 4, "axis");
    // A centred label at the last tick would stick out of the picture.
    const char* anchor = at > frame.right - 14 ? "end" : "middle";
    svg.text(at > frame.right - 14 ? frame.right + 6 : at, frame.bottom + 17, anchor, "tick", tick_label(tick, step));
  }
  svg.text((frame.left + frame.right) / 2, frame.bottom + 33, "middle", "label", label);
}

void draw_y_axis(Svg& svg, const Frame& frame, const Scale& y, const std::string& label, bool percent) {
  const std::vector<double> ticks = nice_ticks(y.from, y.to, kVerticalTicks);
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 0;
  for (const double tick : ticks) {
    svg.line(frame.left, y.at(tick), frame.right, y.at(tick), "grid");
    svg.text(frame.left - 7, y.at(tick) + 4, "end", "tick", tick_label(tick, step) + (percent ? " %" : ""));
  }
  svg.text(2, 12, "start", "label", label);
}

std::string legend(const std::vector<LegendEntry>& entries) {
  std::string out = "<ul class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    out += fmt::format("<li><i class=\"swatch {}\"></i>{}</li>", entry.css, escape(entry.label));
  }
  return out + "</ul>";
}

std::string figure_html(const std::string& title, const std::string& legend_html, const std::string& wide,
                        const std::string& narrow, bool full_width) {
  return fmt::format(
      "<figure class=\"{}\"><figcaption>{}</figcaption>{}<div class=\"wide\">{}</div><div class=\"narrow\">{}</div>"
      "</figure>\n",
      full_width ? "full" : "half", escape(title), legend_html, wide, narrow);
}

std::string figure(const Chart& chart, bool full_width) {
  std::vector<LegendEntry> entries;
  for (const ChartLine& line : chart.lines) {
    if (!line.points.empty()) {
      entries.push_back({line.css, line.label});
    }
  }
  return figure_html(chart.title, entries.size() > 1 ? legend(entries) : std::string(),
                     draw_chart(chart, full_width ? kFullWidth : kHalfWidth, "w"), draw_chart(chart, kNarrowWidth, "n"),
                     full_width);
}

}  // namespace unidle::report
