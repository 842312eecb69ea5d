// Pieces of the page. Everything that comes from a record is escaped here, once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/diagnose/diagnosis.h"
#include "unidle/report/comparison.h"
#include "unidle/report/comparison_words.h"

namespace unidle::report {

/// The page's style sheet.
std::string_view style();

/// A table with a header row and row headers; the caption is read out and not shown.
std::string table_html(const std::string& caption, const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows);
std::string section_html(const std::string& title, const std::string& body);

struct Tile {
  std::string value;
  std::string label;
  std::string note;   // smaller, below; may be empty
  bool word = false;  // the value is a word rather than a number: set smaller
};
std::string tiles_html(const std::vector<Tile>& tiles);
/// The figures that matter most, of one run.
std::vector<Tile> key_figures(const Summary& summary, const std::optional<diagnose::Diagnosis>& diagnosis);

/// One card a finding.
std::string findings_html(const diagnose::Diagnosis& diagnosis);

/// Where a mean step's time went.
std::string step_table(const Summary& summary);
std::string settings_table(const RunData& run);
std::string facts_table(const RunData& run, const Account& account);
/// What the record lacks and what no rule could look at.
std::string missing_html(const RunData& run, const std::optional<diagnose::Diagnosis>& diagnosis);

/// Changes, trials and verification of an optimising run; "" when there are none.
std::string optimise_html(const nlohmann::json& meta);

}  // namespace unidle::report
