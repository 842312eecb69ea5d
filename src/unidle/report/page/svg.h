// Pictures that stretch: their coordinates run from 0 to kUnits on both axes, text stands beside them as HTML.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unidle/report/page/html.h"

namespace unidle::report {

/// Width and height of every picture in its own coordinates.
constexpr double kUnits = 1000;

/// Maps [from, to] to [low, high]. Values outside are clamped and non-finite ones map to `low`, so that a coordinate is
/// always finite. An empty range maps to the middle.
struct Scale {
  double from = 0;
  double to = 1;
  double low = 0;
  double high = 1;
  double at(double value) const;
};

/// Round numbers (1, 2 or 5 times a power of ten apart) inside [low, high]: at least one, at most `most`.
std::vector<double> nice_ticks(double low, double high, int most);
/// A tick's label, with the decimals that the distance between ticks needs; large values with k or M.
std::string tick_label(double value, double step);

/// In data units. A point without a finite y ends a piece of the line.
using Line = std::vector<std::pair<double, double>>;

/// Path data of the line. A piece of one point becomes a dot.
std::string line_data(const Line& line, const Scale& x, const Scale& y);
/// Path data of the area between the line and the bottom.
std::string area_data(const Line& line, const Scale& x, const Scale& y);
/// Path data of a dot at each point.
std::string dot_data(const Line& line, const Scale& x, const Scale& y);
/// Path data of a rectangle, so that one path can hold many of the same colour.
std::string rect_data(double x, double y, double width, double height);

/// `name`: what the pointer's readout calls it; empty: it is not read out. Nothing without data.
Html path(std::string_view css, std::string_view data, std::string_view name = {});

/// A picture. Title and description are for screen readers.
Html picture(std::string_view id, std::string_view title, std::string_view description, const Html& content);

}  // namespace unidle::report
