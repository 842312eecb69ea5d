// A plot of lines over one axis, drawn once for wide and once for narrow screens.
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
  Line raw;           // drawn faintly behind, e.g. the losses that `points` smooths
  bool dots = false;  // mark each point: few measured values rather than a continuous signal
};

struct Chart {
  std::string id;  // unique on the page, letters and digits
  std::string title;
  std::string description;
  std::string x_label;  // with its unit
  std::string y_label;
  std::vector<ChartLine> lines;
  std::optional<double> y_low, y_high;  // otherwise from the data
  std::optional<double> x_high;

  /// Nothing to draw: no line has a point.
  bool empty() const;
};

/// The whole figure: heading, legend (when there is more than one line), both pictures.
std::string figure(const Chart& chart, bool full_width);

struct LegendEntry {
  std::string css;
  std::string label;
};
std::string legend(const std::vector<LegendEntry>& entries);

/// Widths in units of the two renderings; the style sheet shows one of them.
constexpr double kFullWidth = 1040;
constexpr double kHalfWidth = 500;
constexpr double kNarrowWidth = 360;

/// Heading, legend and the two pictures, however they were drawn.
std::string figure_html(const std::string& title, const std::string& legend_html, const std::string& wide,
                        const std::string& narrow, bool full_width);

struct Frame {
  double left, right, top, bottom;  // of the plot area, in picture units
};
/// Tick marks and labels at the bottom, the axis label in the middle below them.
void draw_x_axis(Svg& svg, const Frame& frame, const Scale& x, const std::string& label);
/// Grid lines with labels on the left, the axis label above them.
void draw_y_axis(Svg& svg, const Frame& frame, const Scale& y, const std::string& label, bool percent = false);

}  // namespace unidle::report
