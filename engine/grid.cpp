#include "engine/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/base/layout.h"
#include "unidle/base/split.h"
#include "unidle/base/units.h"

namespace unidle::engine {

namespace {

using Cells = std::vector<std::string>;

Cells header(const Grid& grid, const train::Summary& summary, Language language) {
  Cells cells;
  for (const GridAxis& axis : grid.axes) {
    cells.push_back(axis.key);
  }
  cells.insert(cells.end(), {std::string(translate(language, "samples/s")), "loss"});
  for (const auto& [name, value] : summary.metric) {
    cells.push_back(name);
  }
  return cells;
}

Cells row(const GridPoint& point, const train::Summary& summary) {
  Cells cells = point;
  cells.push_back(format_number(summary.samples_per_s));
  cells.push_back(summary.loss_last ? format_number(*summary.loss_last) : "-");
  for (const auto& [name, metric] : summary.metric) {
    cells.push_back(format_number(metric));
  }
  return cells;
}

}  // namespace

GridAxis GridAxis::parse(const std::string& text) {
  const std::size_t equals = text.find('=');
  GridAxis axis;
  if (equals != std::string::npos) {
    const auto values = split(std::string_view(text).substr(equals + 1), ',');
    axis = {text.substr(0, equals), {values.begin(), values.end()}};
  }
  if (axis.key.empty() || std::ranges::any_of(axis.values, &std::string::empty)) {
    throw Error(ErrorCode::kUsage, "--grid " + text, "expected KEY=VALUE,VALUE,...", "e.g. --grid model.width=64,128");
  }
  for (auto value = axis.values.begin(); value != axis.values.end(); ++value) {
    if (std::find(axis.values.begin(), value, *value) != value) {
      throw Error(ErrorCode::kUsage, "--grid " + text, fmt::format("has {} twice", *value), "leave one out");
    }
  }
  return axis;
}

Grid Grid::parse(const std::vector<std::string>& texts) {
  Grid grid;
  for (const std::string& text : texts) {
    GridAxis axis = GridAxis::parse(text);
    if (std::ranges::find(grid.axes, axis.key, &GridAxis::key) != grid.axes.end()) {
      throw Error(ErrorCode::kUsage, "--grid " + text, fmt::format("{} has its values already", axis.key),
                  fmt::format("give all of them at once: --grid {}=VALUE,VALUE,...", axis.key));
    }
    grid.axes.push_back(std::move(axis));
  }
  return grid;
}

void Grid::refuse_fixed(const std::vector<std::string>& overrides) const {
  for (const GridAxis& axis : axes) {
    for (const std::string& given : overrides) {
      if (given.starts_with(axis.key + "=")) {
        throw Error(ErrorCode::kUsage, "--grid " + axis.key, fmt::format("{} sets the same key", given),
                    "leave one of the two out");
      }
    }
  }
}

std::vector<std::string> Grid::settings(const GridPoint& point) const {
  std::vector<std::string> settings;
  for (std::size_t i = 0; i < point.size(); ++i) {
    settings.push_back(axes[i].key + "=" + point[i]);
  }
  return settings;
}

std::vector<GridPoint> Grid::points() const {
  std::vector<GridPoint> points = {{}};
  for (const GridAxis& axis : axes) {
    std::vector<GridPoint> longer;
    for (const GridPoint& point : points) {
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        longer.back().push_back(value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::string to_json(const Grid& grid, const GridRuns& runs) {
  nlohmann::ordered_json document = {{"grid", nlohmann::ordered_json::array()},
                                     {"runs", nlohmann::ordered_json::array()}};
  for (const GridAxis& axis : grid.axes) {
    document["grid"].push_back(axis.key);
  }
  for (const GridRun& each : runs) {
    nlohmann::ordered_json run;
    for (std::size_t i = 0; i < each.point.size(); ++i) {
      run["settings"][grid.axes[i].key] = each.point[i];
    }
    if (each.summary) {
      run.update(nlohmann::ordered_json::parse(train::to_json(*each.summary)));
    } else {
      run["error"] = each.failure;
    }
    document["runs"].push_back(std::move(run));
  }
  return json_text(document, -1);
}

std::string to_text(const Grid& grid, const GridRuns& runs, Language language) {
  std::vector<Cells> table;
  std::string failures;
  for (const GridRun& run : runs) {
    if (run.summary) {
      table.resize(std::max<std::size_t>(table.size(), 1));
      table.front() = header(grid, *run.summary, language);
      table.push_back(row(run.point, *run.summary));
    } else {
      const std::string settings = fmt::format("{}", fmt::join(grid.settings(run.point), " "));
      failures += translate(language, "failed with {}: {}", settings, run.failure) + "\n";
    }
  }
  std::vector<int> widths;
  for (const Cells& cells : table) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t column = 0; column < cells.size(); ++column) {
      widths[column] = std::max(widths[column], display_width(cells[column]));
    }
  }
  std::string text;
  for (const Cells& cells : table) {
    for (std::size_t column = 0; column < cells.size(); ++column) {
      text += fmt::format("{}{:>{}}", column == 0 ? "" : "  ", cells[column], widths[column]);
    }
    text += "\n";
  }
  return text + failures;
}

}  // namespace unidle::engine
