#include "unidle/report/page/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace unidle::report {

namespace {

constexpr int kTicksOfFull = 11;
constexpr int kTicksOfHalf = 6;
constexpr int kVerticalTicks = 5;
constexpr double kNearEnd = 0.97;
constexpr double kMarkTurns = 0.6;  // further right, the words of a mark stand on its left

bool has_point(const PlotLine& line) {
  return std::any_of(line.points.begin(), line.points.end(),
                     [](const auto& point) { return std::isfinite(point.first) && std::isfinite(point.second); });
}

std::vector<double> sums(const std::vector<Layer>& layers) {
  std::vector<double> all;
  for (const Layer& layer : layers) {
    all.resize(std::max(all.size(), layer.values.size()));
    for (std::size_t i = 0; i < layer.values.size(); ++i) {
      all[i] += layer.values[i];
    }
  }
  return all;
}

struct Values {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void see(double value) {
    if (std::isfinite(value)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
};

/// The range of the vertical axis: the panel's, else that of its values with some room.
Values vertical_range(const Panel& panel) {
  Values seen;
  for (const PlotLine& line : panel.lines) {
    for (const auto& point : line.points) {
      seen.see(point.second);
    }
  }
  for (const double sum : sums(panel.layers)) {
    seen.see(sum);
  }
  for (const Guide& guide : panel.guides) {
    seen.see(guide.at);
  }
  if (seen.low > seen.high) {
    seen = {0, 1};
  }
  const double spread = seen.high - seen.low;
  const double room = spread > 0 ? spread * 0.08 : std::max(std::abs(seen.high) * 0.1, 1e-9);
  Values range{panel.low.value_or(seen.low - room), panel.high.value_or(seen.high + room)};
  if (!std::isfinite(range.low) || !std::isfinite(range.high) || range.high <= range.low) {
    range.low = std::isfinite(range.low) ? range.low : 0;
    range.high = range.low + std::max(1.0, std::abs(range.low));
  }
  return range;
}

double step_of(const std::vector<double>& ticks) { return ticks.size() > 1 ? ticks[1] - ticks[0] : 0; }

Html stacked_columns(const std::vector<Layer>& layers, const Scale& y) {
  Html out;
  const std::size_t count = sums(layers).size();
  std::vector<double> base(count, 0.0);
  const double width = count > 0 ? kUnits / static_cast<double>(count) : 0;
  for (const Layer& layer : layers) {
    std::string data;
    for (std::size_t i = 0; i < layer.values.size(); ++i) {
      if (layer.values[i] > 0) {
        const double top = y.at(base[i] + layer.values[i]);
        data += rect_data(static_cast<double>(i) * width, top, width, y.at(base[i]) - top);
        base[i] += layer.values[i];
      }
    }
    out += path("columns " + layer.css, data, layer.name);
  }
  return out;
}

Html bands(const std::vector<Band>& all, const Scale& x) {
  Html out;
  for (const Band& band : all) {
    const double from = x.at(band.from);
    out += path("band " + band.css, rect_data(from, 0, std::max(1.0, x.at(band.to) - from), kUnits), band.name);
  }
  return out;
}

Html lines(const std::vector<PlotLine>& all, const Scale& x, const Scale& y) {
  Html out;
  for (const PlotLine& line : all) {
    out += path("raw " + line.css, line_data(line.raw, x, y));
    out += line.filled ? path("under " + line.css, area_data(line.points, x, y)) : Html();
  }
  for (const PlotLine& line : all) {
    out += path("line " + line.css, line_data(line.points, x, y), line.name);
    out += line.dots ? path("dots " + line.css, dot_data(line.points, x, y)) : Html();
  }
  return out;
}

Html grid(const std::vector<double>& ticks, const Scale& y) {
  std::string data;
  for (const double tick : ticks) {
    data += line_data({{0, tick}, {1, tick}}, {0, 1, 0, kUnits}, y);
  }
  return path("grid", data);
}

Attribute placed(std::string_view side, double units) {
  return attribute("style", fmt::format("{}:{:.2f}%", side, units / kUnits * 100));
}

Html scale_labels(const std::vector<double>& ticks, const Scale& y) {
  Html labels;
  for (const double tick : ticks) {
    labels += element("span", placed("top", y.at(tick)), tick_label(tick, step_of(ticks)));
  }
  return element("div.scale", attribute("aria-hidden", "true"), labels);
}

Html guides(const Panel& panel, const Scale& x, const Scale& y) {
  Html out;
  for (const Guide& guide : panel.guides) {
    out += element("span.guide", placed("top", y.at(guide.at)), guide.words);
  }
  bool low = false;  // marks that follow one another stand on different heights
  for (const Guide& mark : panel.marks) {
    const bool left = x.at(mark.at) > kUnits * kMarkTurns;
    out += element(fmt::format("span.mark{}{}", left ? ".before" : "", low ? ".lower" : ""),
                   placed("left", x.at(mark.at)), element("b", mark.words));
    low = !low;
  }
  return out;
}

Html panel_html(const Panel& panel, const Axis& axis, bool alone) {
  const Values range = vertical_range(panel);
  const Scale x{axis.from, axis.to, 0, kUnits};
  const Scale y{range.low, range.high, kUnits, 0};
  const std::vector<double> ticks = nice_ticks(range.low, range.high, kVerticalTicks);
  std::vector<LegendEntry> entries;
  for (const Layer& layer : panel.layers) {
    entries.push_back({layer.css, layer.name});
  }
  for (const PlotLine& line : panel.lines) {
    entries.push_back({line.css, line.name});
  }
  const Html head = element("div.head", alone || panel.title.empty() ? Html() : element("b", panel.title),
                            element("span.quiet", panel.unit), entries.size() > 1 ? legend(entries) : Html());
  const Html content =
      grid(ticks, y) + bands(panel.bands, x) + stacked_columns(panel.layers, y) + lines(panel.lines, x, y);
  const Html area = element("div.area", attribute("data-low", fmt::format("{}", range.low)),
                            attribute("data-high", fmt::format("{}", range.high)), attribute("data-unit", panel.unit),
                            picture(panel.id, panel.title, panel.description, content), guides(panel, x, y));
  return element(panel.css.empty() ? "div.panel" : "div.panel." + panel.css, head,
                 element("div.frame", scale_labels(ticks, y), area));
}

Html axis_html(const Axis& axis, Width width) {
  const std::vector<double> ticks = nice_ticks(axis.from, axis.to, width == Width::kFull ? kTicksOfFull : kTicksOfHalf);
  const Scale x{axis.from, axis.to, 0, kUnits};
  Html labels;
  bool minor = false;  // left out on narrow screens
  for (const double tick : ticks) {
    const bool end = x.at(tick) > kNearEnd * kUnits;
    labels += element(fmt::format("span{}{}", minor && width == Width::kFull ? ".minor" : "", end ? ".end" : ""),
                      placed("left", x.at(tick)), tick_label(tick, step_of(ticks)));
    minor = !minor;
  }
  return element("div.ticks", attribute("aria-hidden", "true"), labels) + element("div.axis", axis.label);
}

}  // namespace

bool Panel::empty() const {
  const auto is_positive = [](double value) { return value > 0; };
  return std::none_of(lines.begin(), lines.end(), has_point) &&
         std::none_of(layers.begin(), layers.end(), [&](const Layer& layer) {
           return std::any_of(layer.values.begin(), layer.values.end(), is_positive);
         });
}

Html legend(const std::vector<LegendEntry>& entries) {
  std::vector<Html> items;
  for (const LegendEntry& entry : entries) {
    items.push_back(element("i.swatch." + entry.css) + text(entry.label));
  }
  return list("ul.legend", items);
}

Html plot(std::string_view title, std::string_view note, const std::vector<Panel>& panels, const Axis& axis,
          Width width) {
  Html inside;
  const auto has_data = [](const Panel& panel) { return !panel.empty(); };
  const bool alone = std::count_if(panels.begin(), panels.end(), has_data) == 1;
  for (const Panel& panel : panels) {
    inside += panel.empty() ? Html() : panel_html(panel, axis, alone);
  }
  if (inside.empty()) {
    return {};
  }
  return element(width == Width::kFull ? "figure.full" : "figure.half",
                 attribute("data-from", fmt::format("{}", axis.from)), attribute("data-to", fmt::format("{}", axis.to)),
                 attribute("data-unit", axis.unit), element("figcaption", title),
                 note.empty() ? Html() : element("p.quiet", note), inside, axis_html(axis, width)) +
         Html{"\n"};
}

}  // namespace unidle::report
