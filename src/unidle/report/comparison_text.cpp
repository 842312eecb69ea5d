// A comparison for a terminal.
#include <fmt/format.h>

#include "unidle/base/printable.h"
#include "unidle/base/terminal.h"
#include "unidle/base/units.h"
#include "unidle/report/comparison.h"
#include "unidle/report/comparison_words.h"
#include "unidle/report/text_table.h"

namespace unidle::report {

namespace {

constexpr const char* kBold = "1";
constexpr const char* kBoldRed = "1;31";
constexpr const char* kBoldGreen = "1;32";
constexpr const char* kRed = "31";

std::string section(std::string_view title, const std::string& body) {
  return body.empty() ? std::string() : fmt::format("\n{}\n{}", title, body);
}

std::string rows_as_text(const std::vector<WordRow>& rows, const std::vector<std::string>& header, int width) {
  TextTable table(header);
  for (const WordRow& row : rows) {
    std::vector<std::string> cells = {printable_line(row.label)};
    for (const std::string& cell : row.cells) {
      cells.push_back(printable_line(cell));
    }
    table.add(cells);
  }
  return table.empty() ? std::string() : table.text(width);
}

std::string bullets(const std::vector<std::string>& lines, int width, const char* style = nullptr) {
  std::string out;
  for (const std::string& line : lines) {
    const std::string text = "- " + wrap(printable_line(line), width - 2, 2);
    out += (style == nullptr ? text : painted(text, style)) + '\n';
  }
  return out;
}

std::string changes_as_text(const nlohmann::json& changes, int width) {
  std::string out;
  for (const ChangeWords& change : change_words(changes)) {
    out += wrap(printable_line(change.what), width, 2) + '\n';
    if (!change.why.empty()) {
      out += "  " + wrap(printable_line(change.why), width - 2, 2) + '\n';
    }
  }
  return out;
}

std::string json_rows_as_text(const nlohmann::json& value, int width) {
  const JsonTable table = json_table(value);
  TextTable text(table.header);
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const auto& cell : row) {
      cells.push_back(printable_line(cell));
    }
    text.add(cells);
  }
  return text.empty() ? std::string() : text.text(width);
}

}  // namespace

std::string to_text(const Comparison& c, int width, bool colour) {
  width = std::max(width, 20);
  const char* tone = c.regression() ? kBoldRed : c.training == experiment::SpeedChange::kFaster ? kBoldGreen : kBold;
  const std::string head = wrap(headline(c), width);
  std::string out = (colour ? painted(head, tone) : head) + '\n';
  out += "\n" + cut("A  " + printable_line(c.a.name), static_cast<std::size_t>(width)) + "\n" +
         cut("B  " + printable_line(c.b.name), static_cast<std::size_t>(width)) + "\n";
  out += section("Throughput", rows_as_text(throughput_rows(c), {"", "A", "B", "B/A"}, width));
  out += section("Where a step's time went", rows_as_text(step_rows(c), {"", "A", "B", "change"}, width));
  out += section("Where the run's time went", rows_as_text(phase_rows(c), {"", "A", "B", "change"}, width));
  out += section("Learning at equal samples", rows_as_text(learning_rows(c), {"", "A", "B", "difference"}, width));
  out += section("Settings that differ", rows_as_text(setting_rows(c), {"", "A", "B"}, width));
  out += section("Changes made", changes_as_text(c.changes, width));
  out += section("Trials", json_rows_as_text(c.trials, width));
  out += section("Verification", json_rows_as_text(c.verification, width));
  out += section("Notes", bullets(c.notes, width));
  out += section("Regressions", bullets(c.regressions, width, colour ? kRed : nullptr));
  return out;
}

}  // namespace unidle::report
