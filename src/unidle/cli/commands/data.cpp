// `unidle data`: how the data pipeline reads files.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "unidle/base/json.h"
#include "unidle/base/printable.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/cli/number_option.h"
#include "unidle/cli/subcommand.h"
#include "unidle/data/inspect/inspection.h"

namespace unidle::cli::commands {

namespace {

struct Arguments {
  std::vector<std::string> paths;
  std::int64_t rows = 5;
  std::string format = "text";
};

/// A text as a table cell: cut or padded to the width.
std::string cell(std::string_view text, std::size_t width) {
  std::string shown = printable_line(text.substr(0, 4 * width));
  if (shown.size() > width) {
    shown = printable_line(std::string_view(shown).substr(0, width - 3)) + "...";
  }
  return fmt::format("{:<{}}", shown, width);
}

/// One line per column, followed by its cells of the first rows: tables are often wider than terminals.
void print_columns(const data::Inspection& found) {
  constexpr std::size_t kMostName = 28;
  constexpr std::size_t kMostCell = 20;
  std::size_t name_width = 6;
  std::size_t type_width = 4;
  for (const data::Inspection::Column& column : found.columns) {
    name_width = std::min(kMostName, std::max(name_width, column.name.size()));
    type_width = std::min(kMostName, std::max(type_width, column.type.size()));
  }
  const bool sample = !found.sample.empty();
  print_to(stdout, "\n{}  {}  {:>9}{}\n", cell("COLUMN", name_width), cell("TYPE", type_width), "MISSING",
           sample ? "  FIRST ROWS" : "");
  const auto room = static_cast<std::size_t>(std::max(40, terminal_width(stdout)));
  for (std::size_t i = 0; i < found.columns.size(); ++i) {
    const data::Inspection::Column& column = found.columns[i];
    std::string line = fmt::format("{}  {}  {:>9}", cell(column.name, name_width), cell(column.type, type_width),
                                   column.missing ? std::to_string(*column.missing) : "-");
    for (std::size_t row = 0; row < found.sample.size() && line.size() + 2 + kMostCell <= room; ++row) {
      line += "  " + cell(found.sample[row][i], kMostCell);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    print_to(stdout, "{}\n", line);
  }
}

/// "passed over: 3 files (2 .npy, 1 without extension)"
void print_passed_over(const data::Inspection& found) {
  std::uint64_t files = 0;
  std::vector<std::string> kinds;
  for (const auto& [extension, count] : found.passed_over) {
    files += count;
    kinds.push_back(fmt::format("{} {}", count, extension.empty() ? "without extension" : printable_line(extension)));
  }
  if (files > 0) {
    print_to(stdout, "passed over: {} ({})\n", format_count(files, "file"), fmt::join(kinds, ", "));
  }
}

void print_text(const Arguments& arguments, const data::Inspection& found) {
  print_to(stdout, "{}: {}, {}\n", fmt::join(arguments.paths, ", "), found.kind,
           format_count(static_cast<std::uint64_t>(found.rows), "row"));
  print_passed_over(found);
  if (!found.columns.empty()) {
    print_columns(found);
  }
  if (!found.problems.empty()) {
    print_to(stdout, "\nPROBLEMS\n");
  }
  for (const data::Inspection::Problem& problem : found.problems) {
    print_to(stdout, "{}: {}\n", printable_line(problem.at), printable_line(problem.what));
  }
}

int inspect(const Arguments& arguments) {
  data::Inspection found;
  {
    std::unique_ptr<Progress> progress;
    data::InspectOptions options;
    options.sample_rows = arguments.rows;
    options.progress = [&](std::uint64_t done, std::uint64_t of) {
      progress = progress ? std::move(progress) : std::make_unique<Progress>("inspect", of);
      progress->update(done);
    };
    found = data::inspect(arguments.paths, options);
  }
  if (arguments.format == "json") {
    print_to(stdout, "{}\n", json_text(data::to_json(found)));
  } else {
    print_text(arguments, found);
  }
  return found.problems.empty() ? 0 : 1;
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.require_subcommand(1);
  CLI::App* action = app.add_subcommand(
      "inspect", "Show kind, rows, columns and problems with their place; exit code 1 if there are any problems");
  action->add_option("path", arguments->paths, "A file or folder; several for the parts of one table")->required();
  action->add_option("--rows", arguments->rows, "Rows to show")->check(number_from_zero())->capture_default_str();
  action->add_option("--format", arguments->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  return [arguments] { return inspect(*arguments); };
}

}  // namespace

const Subcommand& data() {
  static const Subcommand kCommand = {"data", "Show what the data pipeline sees in files",
                                      "Examples:\n  unidle data inspect log.csv\n  unidle data inspect photographs/ "
                                      "--format json\n  unidle data inspect part1.csv part2.csv --rows 10",
                                      setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
