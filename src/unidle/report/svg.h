// SVG as text: escaping, scales, ticks and the few shapes that plots consist of.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unidle::report {

/// Makes any bytes safe inside HTML text and quoted attributes: escapes markup, drops control characters, and replaces
/// invalid UTF-8 with U+FFFD.
std::string escape(std::string_view text);

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

using Line = std::vector<std::pair<double, double>>;  // in picture coordinates

/// One picture, `width` x `height` units. Title and description are for screen readers.
class Svg {
 public:
  Svg(double width, double height, std::string_view id, std::string_view title, std::string_view description);
  void rect(double x, double y, double width, double height, std::string_view css);
  void line(double x1, double y1, double x2, double y2, std::string_view css);
  /// An open line through the points; fewer than two draw nothing.
  void path(const Line& points, std::string_view css);
  /// Raw path data, as from rect_data().
  void shape(std::string_view data, std::string_view css);
  void dot(double x, double y, double radius, std::string_view css);
  /// `anchor`: start, middle or end.
  void text(double x, double y, std::string_view anchor, std::string_view css, std::string_view words);
  std::string str() const { return body_ + "</svg>"; }

 private:
  std::string body_;
};

/// Path data of a rectangle, so that one path can hold many of the same colour.
std::string rect_data(double x, double y, double width, double height);

}  // namespace unidle::report
