// A record as plain data, read once and tidied.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unidle/record/record.h"

namespace unidle::account {

/// One run. After tidy(), times are sorted and within [0, 2^61] ns, and every value except losses is
/// is_representable().
struct RunData {
  std::string name;  // the record folder's name
  std::filesystem::path folder;
  nlohmann::json meta = nlohmann::json::object();  // what the record says about the run, by key
  std::vector<record::Step> steps;                 // of all processes
  std::vector<record::Span> spans;                 // of all processes
  std::vector<record::Note> notes;
  std::vector<record::Setting> settings;
  std::map<std::string, std::vector<record::Metric>> metrics;
  std::vector<std::pair<record::Series, std::vector<record::Point>>> series;
  std::vector<std::string> missing;  // what the record lacks, in words

  /// The text of a meta key; "" when it is absent or not a string.
  std::string meta_text(std::string_view key) const;
  /// The value of a meta key; null when absent.
  nlohmann::json meta_value(std::string_view key) const;
  /// The value of kStartNs or kEndNs; nothing when it is missing or not a possible time.
  std::optional<std::int64_t> meta_time(std::string_view key) const;
  /// The points of a series for every subject; empty when there are none.
  std::vector<const std::vector<record::Point>*> points(std::string_view series_name) const;
};

/// True for a finite value far enough from the limit that sums and squares stay finite.
bool is_representable(double value);

/// Reads the record at `path` (its folder or record.db) and tidies it. Throws kInput when it is not a record.
RunData load_run(const std::filesystem::path& path);
RunData load_run(const record::Reader& reader);
/// Reads meta values, notes and settings: what the program is, without what was measured.
RunData load_facts(const record::Reader& reader);
/// Reads meta values, and only the named series.
RunData load_series(const record::Reader& reader, const std::vector<std::string_view>& names);

/// Drops rows with impossible times or values, sorts the others, and lists in `missing` what was dropped or is absent.
/// Never throws on odd data.
void tidy(RunData& run);

}  // namespace unidle::account
