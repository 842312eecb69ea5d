#include "unidle/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unidle/base/printable.h"

namespace unidle::report {

namespace {

std::string coordinate(double value) {
  if (!std::isfinite(value)) {
    return "0";
  }
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) {
    text.resize(text.size() - 2);
  }
  return text == "-0" ? "0" : text;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\r': break;
      default: out += c;
    }
  }
  return out;
}

double Scale::at(double value) const {
  if (!std::isfinite(value) || !std::isfinite(from) || !std::isfinite(to)) {
    return low;
  }
  if (to <= from) {
    return (low + high) / 2;
  }
  // Halves first: the difference of two huge values may not be finite.
  const double share = (std::clamp(value, from, to) / 2 - from / 2) / (to / 2 - from / 2);
  return low + share * (high - low);
}

std::vector<double> nice_ticks(double low, double high, int most) {
  if (!std::isfinite(low) || !std::isfinite(high) || high <= low || most < 2) {
    return {std::isfinite(low) ? low : 0};
  }
  const double rough = high / most - low / most;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0}) {
    const double step = factor * power;
    if (!std::isfinite(step) || step <= 0) {
      break;
    }
    std::vector<double> ticks;
    const double first = std::ceil(low / step - 1e-9);
    const double last = std::floor(high / step + 1e-9);
    // Above 2^53, consecutive integers are not distinct.
    if (last - first + 1 > most || std::abs(last) > 9e15 || std::abs(first) > 9e15) {
      continue;
    }
    for (double i = first; i <= last; ++i) {
      ticks.push_back(i * step + 0.0);
    }
    if (!ticks.empty()) {
      return ticks;
    }
  }
  return {low};
}

std::string tick_label(double value, double step) {
  const double magnitude = std::abs(value);
  if (magnitude >= 1e9 || (magnitude > 0 && magnitude < 1e-4)) {
    return fmt::format("{:.3g}", value);
  }
  if (magnitude >= 1e6) {
    return fmt::format("{:.3g}M", value / 1e6);
  }
  if (magnitude >= 1e4) {
    return fmt::format("{:.4g}k", value / 1e3);
  }
  const int decimals = step > 0 ? std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 5) : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

Svg::Svg(double width, double height, std::string_view id, std::string_view title, std::string_view description) {
  body_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" role=\"img\" aria-labelledby=\"{2}-t {2}-d\">"
      "<title id=\"{2}-t\">{3}</title><desc id=\"{2}-d\">{4}</desc>",
      coordinate(width), coordinate(height), escape(id), escape(title), escape(description));
}

void Svg::rect(double x, double y, double width, double height, std::string_view css) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"/>", coordinate(x),
                       coordinate(y), coordinate(std::max(width, 0.0)), coordinate(std::max(height, 0.0)), css);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>", coordinate(x1), coordinate(y1),
                       coordinate(x2), coordinate(y2), css);
}

void Svg::path(const Line& points, std::string_view css) {
  if (points.size() < 2) {
    return;
  }
  std::string data;
  for (const auto& [x, y] : points) {
    data += fmt::format("{}{} {}", data.empty() ? 'M' : 'L', coordinate(x), coordinate(y));
  }
  shape(data, css);
}

void Svg::shape(std::string_view data, std::string_view css) {
  if (!data.empty()) {
    body_ += fmt::format("<path d=\"{}\" class=\"{}\"/>", data, css);
  }
}

void Svg::dot(double x, double y, double radius, std::string_view css) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"/>", coordinate(x), coordinate(y),
                       coordinate(radius), css);
}

void Svg::text(double x, double y, std::string_view anchor, std::string_view css, std::string_view words) {
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" class=\"{}\">{}</text>", coordinate(x),
                       coordinate(y), anchor, css, escape(words));
}

std::string rect_data(double x, double y, double width, double height) {
  return fmt::format("M{} {}h{}v{}h-{}z", coordinate(x), coordinate(y), coordinate(width), coordinate(height),
                     coordinate(width));
}

}  // namespace unidle::report
