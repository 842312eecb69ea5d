// Pictures as text: escaping, scales, ticks and the few SVG shapes that the plots are made of.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unidle::report {

/// Safe inside HTML text and quoted attributes, whatever the bytes: markup is escaped, control characters are dropped
/// and bytes that are no UTF-8 become U+FFFD.
std::string escape(std::string_view text);

/// Maps [from, to] to [low, high]; values outside are held at the ends and non-finite ones at `low`, so that a
/// coordinate is always finite. An empty range maps to the middle.
struct Scale {
  double from = 0;
  double to = 1;
  double low = 0;
  double high = 1;
  double at(double value) const;
};

/// Round numbers (1, 2 or 5 times a power of ten apart) inside [low, high]; at most `most`, at least one.
std::vector<double> nice_ticks(double low, double high, int most);
/// With as many decimals as the distance between ticks needs; large values with k or M.
std::string tick_label(double value, double step);

using Line = std::vector<std::pair<double, double>>;  // in picture coordinates

/// One picture, `width` x `height` units. Title and description are there for those who do not see it.
class Svg {
 public:
  Svg(double width, double height, std::string_view id, std::string_view title, std::string_view description);
  void rect(double x, double y, double width, double height, std::string_view css);
  void line(double x1, double y1, double x2, double y2, std::string_view css);
  /// An open line through the points; nothing for fewer than two.
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

/// Path data of a rectangle, for many of one colour in one path.
std::string rect_data(double x, double y, double width, double height);

}  // namespace unidle::report
