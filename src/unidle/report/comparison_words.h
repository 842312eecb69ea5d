// A comparison as rows of words, for both the terminal and the page.
#pragma once

#include <string>
#include <vector>

#include "unidle/language/translator.h"
#include "unidle/report/comparison.h"

namespace unidle::report {

struct WordRow {
  std::string label;
  std::vector<std::string> cells;  // A, B, and the difference
};

std::vector<WordRow> throughput_rows(const Comparison& comparison, const Translator& translator);
std::vector<WordRow> step_rows(const Comparison& comparison, const Translator& translator);
std::vector<WordRow> phase_rows(const Comparison& comparison, const Translator& translator);
std::vector<WordRow> learning_rows(const Comparison& comparison, const Translator& translator);
std::vector<WordRow> setting_rows(const Comparison& comparison, const Translator& translator);  // two cells per row

struct ChangeWords {
  std::string what;  // "loader.workers: 0 -> 8 (gain 1.8x)"
  std::string why;   // may be empty
};
/// From the meta "changes" of an optimising run; malformed entries are shown unchanged.
std::vector<ChangeWords> change_words(const nlohmann::json& changes, const Translator& translator);

/// A list of objects, or one object, as a table of at most eight columns and forty rows; a last row counts the rest.
struct JsonTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
JsonTable json_table(const nlohmann::json& value, const Translator& translator);

/// A JSON value for people: text without quotes, numbers with three digits.
std::string plain_text(const nlohmann::json& value);

/// A mean step part like "120 ms"; "-" when it was not seen.
std::string step_words(const std::optional<double>& seconds);

/// The name of a step part or phase on screen.
std::string part_label(Part part, const Translator& translator);

}  // namespace unidle::report
