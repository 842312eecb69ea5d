// Pieces of the page. Text from a record is escaped here, once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/language/translator.h"
#include "unidle/report/comparison.h"
#include "unidle/report/comparison_words.h"

namespace unidle::report {

/// The page's style sheet.
std::string_view style();

/// A table with a header row and row headers; the caption is for screen readers only.
std::string table_html(const std::string& caption, const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows);
std::string section_html(const std::string& title, const std::string& body);

struct Tile {
  std::string value;
  std::string label;
  std::string note;   // smaller, below; may be empty
  bool word = false;  // the value is a word rather than a number, in smaller type
};
std::string tiles_html(const std::vector<Tile>& tiles);
/// The most important figures of one run.
std::vector<Tile> key_figures(const Summary& summary, const std::optional<diagnose::Diagnosis>& diagnosis,
                              const Translator& translator);

/// One card per finding.
std::string findings_html(const diagnose::Diagnosis& diagnosis, const Translator& translator);

/// Where the time of a mean step went.
std::string step_table(const Summary& summary, const Translator& translator);
std::string settings_table(const RunData& run, const Translator& translator);
std::string facts_table(const RunData& run, const Account& account, const Translator& translator);
/// What the record lacks, and which signals rules lacked.
std::string missing_html(const RunData& run, const std::optional<diagnose::Diagnosis>& diagnosis,
                         const Translator& translator);

/// Changes, trials and verification of an optimising run; "" when absent.
std::string optimise_html(const nlohmann::json& meta, const Translator& translator);

}  // namespace unidle::report
