#include "unidle/report/page/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

bool is_finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

}  // namespace

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

std::string line_data(const Line& line, const Scale& x, const Scale& y) {
  std::string data;
  std::size_t piece = 0;  // points of the current one
  const auto end_piece = [&] {
    data += piece == 1 ? "h0" : "";
    piece = 0;
  };
  for (const auto& point : line) {
    if (!is_finite(point)) {
      end_piece();
      continue;
    }
    data +=
        fmt::format("{}{} {}", piece == 0 ? 'M' : 'L', coordinate(x.at(point.first)), coordinate(y.at(point.second)));
    ++piece;
  }
  end_piece();
  return data;
}

std::string area_data(const Line& line, const Scale& x, const Scale& y) {
  std::string data;
  for (std::size_t i = 0; i < line.size();) {
    std::size_t end = i;
    while (end < line.size() && is_finite(line[end])) {
      ++end;
    }
    if (end > i) {
      data += fmt::format("M{} {}", coordinate(x.at(line[i].first)), coordinate(y.low));
      for (std::size_t k = i; k < end; ++k) {
        data += fmt::format("L{} {}", coordinate(x.at(line[k].first)), coordinate(y.at(line[k].second)));
      }
      data += fmt::format("V{}z", coordinate(y.low));
    }
    i = std::max(end, i + 1);
  }
  return data;
}

std::string dot_data(const Line& line, const Scale& x, const Scale& y) {
  std::string data;
  for (const auto& point : line) {
    if (is_finite(point)) {
      data += fmt::format("M{} {}h0", coordinate(x.at(point.first)), coordinate(y.at(point.second)));
    }
  }
  return data;
}

std::string rect_data(double x, double y, double width, double height) {
  return fmt::format("M{} {}h{}v{}h-{}z", coordinate(x), coordinate(y), coordinate(width), coordinate(height),
                     coordinate(width));
}

Html path(std::string_view css, std::string_view data, std::string_view name) {
  if (data.empty()) {
    return {};
  }
  Element made("path");
  made.add(attribute("class", std::string(css)));
  made.add(attribute("d", std::string(data)));
  if (!name.empty()) {
    made.add(attribute("data-name", std::string(name)));
  }
  return made.finish();
}

Html picture(std::string_view id, std::string_view title, std::string_view description, const Html& content) {
  const std::string of_title = fmt::format("{}-title", id);
  const std::string of_description = fmt::format("{}-text", id);
  return element("svg", attribute("viewBox", fmt::format("0 0 {0} {0}", kUnits)),
                 attribute("preserveAspectRatio", "none"), attribute("role", "img"),
                 attribute("aria-labelledby", of_title + " " + of_description),
                 element("title", attribute("id", of_title), title),
                 element("desc", attribute("id", of_description), description), content);
}

}  // namespace unidle::report
