// A line plot, drawn once for wide and once for narrow screens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/report/svg.h"

namespace unidle::report {

struct ChartLine {
  std::string label;
  std::string css;    // colour class: "run0", "gpu"
  Line points;        // in data units
  Line raw;           // drawn faintly behind, for example the losses that `points` smooths
  bool dots = false;  // mark each point: for a few measured values rather than a continuous signal
};

struct Chart {
  std::string id;  // unique on the page, letters and digits
  std::string title;
  std::string description;
  std::string x_label;  // with its unit
  std::string y_label;
  std::vector<ChartLine> lines;
  std::optional<double> y_low, y_high;  // default: from the data
  std::optional<double> x_high;

  /// True when no line has a point.
  bool empty() const;
};

/// The whole figure: heading, legend (when there is more than one line), both pictures.
std::string figure(const Chart& chart, bool full_width);

struct LegendEntry {
  std::string css;
  std::string label;
};
std::string legend(const std::vector<LegendEntry>& entries);

/// Widths of the two renderings in picture units; the style sheet shows one of them.
constexpr double kFullWidth = 1040;
constexpr double kHalfWidth = 500;
constexpr double kNarrowWidth = 360;

/// Heading, legend and the two given pictures.
std::string figure_html(const std::string& title, const std::string& legend_html, const std::string& wide,
                        const std::string& narrow, bool full_width);

struct Frame {
  double left, right, top, bottom;  // of the plot area, in picture units
};
/// Draws tick marks and labels at the bottom, and the axis label centred below them.
void draw_x_axis(Svg& svg, const Frame& frame, const Scale& x, const std::string& label);
/// Draws grid lines with labels on the left, and the axis label above them.
void draw_y_axis(Svg& svg, const Frame& frame, const Scale& y, const std::string& label, bool percent = false);

}  // namespace unidle::report
