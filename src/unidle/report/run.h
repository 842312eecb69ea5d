// A record as the report reads it: loaded once, tidied, and from then on plain data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "unidle/record/record.h"

namespace unidle::report {

/// One run. After tidy() times lie in [0, 2^61] ns and are sorted, and every value but a loss is workable().
struct RunData {
  std::string name;  // the record folder's name
  std::filesystem::path folder;
  nlohmann::json meta = nlohmann::json::object();  // what the record says about the run, by key
  std::vector<record::Step> steps;                 // of the reference process: the one with most steps
  double rank_factor = 1;                          // samples of all processes over those of the reference process
  std::vector<record::Span> spans;                 // of the reference process
  std::vector<record::Setting> settings;
  std::map<std::string, std::vector<record::Metric>> metrics;
  std::vector<std::pair<record::Series, std::vector<record::Point>>> series;
  std::optional<std::int64_t> attached_ns;  // since when a profiler's window slows the reference process
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<std::string> missing;  // what the record lacks, in words for a person

  double wall_s() const { return static_cast<double>(end_ns - start_ns) / 1e9; }
  double since_start(std::int64_t t_ns) const { return static_cast<double>(t_ns - start_ns) / 1e9; }
  /// The text of a meta key; "" when absent or not a string.
  std::string meta_text(std::string_view key) const;
  /// The points of a series for every subject; empty when there are none.
  std::vector<const std::vector<record::Point>*> points(std::string_view series_name) const;
  /// CPUs that the run was allowed to use (affinity and quota); 0 when unknown.
  double cpus() const;
};

/// A measured value that can be worked with: finite, and so far from the limit that sums and squares stay finite.
bool workable(double value);

/// Reads the record at `path` (its folder or record.db) and tidies it. Throws kInput when it is none.
RunData load_run(const std::filesystem::path& path);

/// Drops rows with impossible times or values, sorts, picks the reference process, fills in start and end where the
/// record was cut off, and says in `missing` what it did and what is not there. Never throws on odd data.
void tidy(RunData& run);

}  // namespace unidle::report
