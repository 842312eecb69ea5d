// A comparison for a terminal.
#include <fmt/format.h>

#include "unidle/base/layout.h"
#include "unidle/base/printable.h"
#include "unidle/base/terminal.h"
#include "unidle/language/translator.h"
#include "unidle/report/comparison.h"
#include "unidle/report/comparison_words.h"
#include "unidle/report/scaling.h"
#include "unidle/report/text_table.h"

namespace unidle::report {

namespace {

constexpr const char* kBold = "1";
constexpr const char* kBoldRed = "1;31";
constexpr const char* kBoldGreen = "1;32";
constexpr const char* kRed = "31";

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
    const std::string text = block(printable_line(line), width, 0, "- ");
    out += style == nullptr ? text : painted(text.substr(0, text.size() - 1), style) + '\n';
  }
  return out;
}

std::string changes_as_text(const std::vector<ChangeWords>& changes, int width) {
  std::string out;
  for (const ChangeWords& change : changes) {
    out += block(printable_line(change.what), width, 0, "");
    if (!change.why.empty()) {
      out += block(printable_line(change.why), width, 2, "");
    }
  }
  return out;
}

std::string table_as_text(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                          int width) {
  TextTable text(header);
  for (const auto& row : rows) {
    std::vector<std::string> cells;
    std::transform(row.begin(), row.end(), std::back_inserter(cells), printable_line);
    text.add(cells);
  }
  return text.empty() ? std::string() : text.text(width);
}

}  // namespace

std::string to_text(const Comparison& c, int width, bool colour, Language language) {
  const Translator translator{language};
  width = std::max(width, 20);
  const bool faster = !c.may_be_others() &&
                      (c.training == experiment::SpeedChange::kFaster || c.total == experiment::SpeedChange::kFaster);
  const char* tone = c.regression() ? kBoldRed : faster ? kBoldGreen : kBold;
  const std::string head = fill(headline(c, "A", "B", language), width);
  std::string out = (colour ? painted(head, tone) : head) + '\n';
  out += "\n" + cut("A  " + printable_line(c.a.name), static_cast<std::size_t>(width)) + "\n" +
         cut("B  " + printable_line(c.b.name), static_cast<std::size_t>(width)) + "\n";
  const auto add = [&](std::string_view title, const std::string& body) {
    out += body.empty() ? std::string() : fmt::format("\n{}\n{}", translator.word(title), body);
  };
  const std::vector<std::string> with_change = {"", "A", "B", translator.word("change")};
  add("Throughput", rows_as_text(throughput_rows(c, translator), {"", "A", "B", "B/A"}, width));
  add("Where a step's time went", rows_as_text(step_rows(c, translator), with_change, width));
  add("Time of a rank for each sample", rows_as_text(scaling_rows(c, translator), with_change, width));
  add("Where the run's time went", rows_as_text(phase_rows(c, translator), with_change, width));
  add("Learning at equal samples",
      rows_as_text(learning_rows(c, translator), {"", "A", "B", translator.word("difference")}, width));
  add("Settings that differ", rows_as_text(setting_rows(c, translator), {"", "A", "B"}, width));
  const OptimiseWords optimised = optimise_words(c.changes, c.trials, c.verification, translator);
  add("Changes made", changes_as_text(optimised.changes, width));
  add("Trials", table_as_text(trial_columns(translator), optimised.trials, width));
  add("Verification", table_as_text({"", ""}, optimised.verification, width));
  out += optimised.unreadable.empty() ? "" : "\n" + block(optimised.unreadable, width, 0, "");
  add("Notes", bullets(c.notes, width));
  add("Regressions", bullets(c.regressions, width, colour ? kRed : nullptr));
  return out;
}

}  // namespace unidle::report
