#include "workloads/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/base/split.h"
#include "unidle/base/units.h"

namespace unidle::workloads {

namespace {

using Cells = std::vector<std::string>;

Cells header(const Grid& grid, const train::Summary& summary) {
  Cells cells = {grid.key, "samples/s", "loss"};
  for (const auto& [name, value] : summary.metric) {
    cells.push_back(name);
  }
  return cells;
}

Cells row(const std::string& value, const train::Summary& summary) {
  Cells cells = {value, format_number(summary.samples_per_s),
                 summary.loss_last ? format_number(*summary.loss_last) : "-"};
  for (const auto& [name, metric] : summary.metric) {
    cells.push_back(format_number(metric));
  }
  return cells;
}

}  // namespace

Grid Grid::parse(const std::string& text) {
  const std::size_t equals = text.find('=');
  Grid grid;
  if (equals != std::string::npos) {
    const auto values = split(std::string_view(text).substr(equals + 1), ',');
    grid = {text.substr(0, equals), {values.begin(), values.end()}};
  }
  if (grid.key.empty() || std::ranges::any_of(grid.values, &std::string::empty)) {
    throw Error(ErrorCode::kUsage, "--grid " + text, "expected KEY=VALUE,VALUE,...", "e.g. --grid model.width=64,128");
  }
  return grid;
}

std::string to_json(const Grid& grid, const GridRuns& runs) {
  nlohmann::ordered_json document = {{"grid", grid.key}, {"runs", nlohmann::ordered_json::array()}};
  for (const auto& [value, summary] : runs) {
    nlohmann::ordered_json run = {{"value", value}};
    run.update(nlohmann::ordered_json::parse(train::to_json(summary)));
    document["runs"].push_back(std::move(run));
  }
  return json_text(document, -1);
}

std::string to_text(const Grid& grid, const GridRuns& runs) {
  if (runs.empty()) {
    return "";
  }
  std::vector<Cells> table = {header(grid, runs.front().second)};
  for (const auto& [value, summary] : runs) {
    table.push_back(row(value, summary));
  }
  std::vector<std::size_t> widths;
  for (const Cells& cells : table) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t column = 0; column < cells.size(); ++column) {
      widths[column] = std::max(widths[column], cells[column].size());
    }
  }
  std::string text;
  for (const Cells& cells : table) {
    for (std::size_t column = 0; column < cells.size(); ++column) {
      text += fmt::format("{}{:>{}}", column == 0 ? "" : "  ", cells[column], widths[column]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace unidle::workloads
