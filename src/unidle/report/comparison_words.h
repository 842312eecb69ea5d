// The comparison as rows of words, for the terminal and the page alike.
#pragma once

#include <string>
#include <vector>

#include "unidle/report/comparison.h"

namespace unidle::report {

struct WordRow {
  std::string label;
  std::vector<std::string> cells;  // A, B, and what lies between them
};

std::vector<WordRow> throughput_rows(const Comparison& comparison);
std::vector<WordRow> step_rows(const Comparison& comparison);
std::vector<WordRow> phase_rows(const Comparison& comparison);
std::vector<WordRow> learning_rows(const Comparison& comparison);
std::vector<WordRow> setting_rows(const Comparison& comparison);  // two cells a row

struct ChangeWords {
  std::string what;  // "loader.workers: 0 -> 8 (gain 1.8x)"
  std::string why;   // may be empty
};
/// Out of the meta "changes" of an optimising run; odd entries are shown as they are.
std::vector<ChangeWords> change_words(const nlohmann::json& changes);

/// Any list of objects, or one object, as a table. At most eight columns and forty rows; the rest is counted in a row.
struct JsonTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
JsonTable json_table(const nlohmann::json& value);

/// A JSON value as a person writes it: text without quotes, numbers with three digits.
std::string plain_text(const nlohmann::json& value);

/// "120 ms" and the like for a mean step part; "-" when it was not seen.
std::string step_words(const std::optional<double>& seconds);

/// What a part of the step or a phase is called on screen.
std::string part_label(Part part);

}  // namespace unidle::report
