#include "unidle/account/run_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <utility>

#include "unidle/account/as_parsed.h"
#include "unidle/base/json.h"

namespace unidle::account {

namespace {

// Real clock readings are far below this; the sum of two cannot overflow.
constexpr std::int64_t kLatestNs = std::int64_t{1} << 61;

bool possible(std::int64_t t_ns, std::int64_t duration_ns) {
  return t_ns >= 0 && t_ns <= kLatestNs && duration_ns >= 0 && duration_ns <= kLatestNs;
}

bool possible(const record::Step& step) {
  const auto part_possible = [](const std::optional<std::int64_t>& part) {
    return !part || (*part >= 0 && *part <= kLatestNs / 8);  // six of them are added
  };
  return possible(step.t_ns, step.duration_ns) && step.samples >= 0 && step.samples <= kLatestNs &&
         (!step.samples_before || (*step.samples_before >= 0 && *step.samples_before <= kLatestNs)) &&
         part_possible(step.input_ns) && part_possible(step.transfer_ns) && part_possible(step.forward_ns) &&
         part_possible(step.backward_ns) && part_possible(step.optimizer_ns) && part_possible(step.sync_ns);
}

std::size_t drop_impossible(RunData& run) {
  std::size_t dropped = std::erase_if(run.steps, [](const auto& step) { return !possible(step); });
  dropped += std::erase_if(run.spans, [](const auto& span) { return !possible(span.t_ns, span.duration_ns); });
  for (auto& [name, values] : run.metrics) {
    dropped += std::erase_if(values, [](const auto& metric) {
      return !possible(metric.t_ns, 0) || metric.samples < 0 || metric.samples > kLatestNs ||
             !is_representable(metric.value);
    });
  }
  for (auto& [series, points] : run.series) {
    dropped += std::erase_if(
        points, [](const auto& point) { return !possible(point.t_ns, 0) || !is_representable(point.value); });
  }
  return dropped;
}

/// Most are in order: checking that is cheaper than merging them.
template <typename Rows>
void sort_by_time(Rows& rows) {
  const auto earlier = [](const auto& a, const auto& b) { return a.t_ns < b.t_ns; };
  if (!std::is_sorted(rows.begin(), rows.end(), earlier)) {
    std::stable_sort(rows.begin(), rows.end(), earlier);
  }
}

void sort_all_by_time(RunData& run) {
  sort_by_time(run.steps);
  sort_by_time(run.spans);
  for (auto& [name, values] : run.metrics) {
    sort_by_time(values);
  }
  for (auto& [series, points] : run.series) {
    sort_by_time(points);
  }
}

void say_what_is_missing(RunData& run, std::size_t dropped) {
  if (dropped > 0) {
    run.missing.push_back(fmt::format("{} rows with impossible times or values were left out.", dropped));
  }
  if (!run.meta_time(record::meta::kEndNs)) {
    run.missing.emplace_back(
        "The record has no end: the run was cut off or is still going on. Times are up to the "
        "last thing seen.");
  }
  if (run.steps.empty()) {
    run.missing.emplace_back("No training step was seen, so there is no breakdown of the step and no throughput.");
  } else if (run.steps.size() < 20) {
    run.missing.push_back(
        fmt::format("{} training steps were seen, which is few: figures are rough.", run.steps.size()));
  }
  if (run.series.empty()) {
    run.missing.emplace_back("No device or host series were recorded.");
  }
  const auto problems = run.meta.find(record::meta::kProblems);
  if (problems != run.meta.end() && problems->is_array()) {
    for (const auto& problem : *problems) {
      run.missing.push_back(problem.is_string() ? problem.get<std::string>() : json_text(problem, -1));
    }
  }
  const auto lost = run.meta.find(record::meta::kDropped);
  if (lost != run.meta.end() && lost->is_number() && lost->get<double>() > 0) {
    run.missing.push_back(
        fmt::format("{} events were dropped because the ring was full.", std::llround(lost->get<double>())));
  }
}

}  // namespace

std::string RunData::meta_text(std::string_view key) const { return text_in(meta, key); }

nlohmann::json RunData::meta_value(std::string_view key) const {
  const auto found = meta.find(key);
  return found == meta.end() ? nlohmann::json() : *found;
}

std::optional<std::int64_t> RunData::meta_time(std::string_view key) const {
  const nlohmann::json value = meta_value(key);  // a truncated or foreign value must not stop the caller
  const bool whole = value.is_number_integer() && possible(value.get<std::int64_t>(), 0);
  return whole ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

std::vector<const std::vector<record::Point>*> RunData::points(std::string_view series_name) const {
  std::vector<const std::vector<record::Point>*> found;
  for (const auto& [description, values] : series) {
    if (description.name == series_name && !values.empty()) {
      found.push_back(&values);
    }
  }
  return found;
}

bool is_representable(double value) { return std::abs(value) < 1e30; }

void tidy(RunData& run) {
  if (!run.meta.is_object()) {
    run.meta = nlohmann::json::object();
  }
  const std::size_t dropped = drop_impossible(run);
  sort_all_by_time(run);
  say_what_is_missing(run, dropped);
}

namespace {

/// The last part of the path; that of its target for the link to the newest record.
std::string name_of(const std::filesystem::path& folder) {
  auto full = std::filesystem::absolute(folder).lexically_normal();
  full = full.has_filename() ? full : full.parent_path();
  std::error_code not_there;
  const auto target = full.filename() == "latest" ? std::filesystem::canonical(full, not_there) : full;
  return (not_there ? full : target).filename().string();
}

RunData load_meta(const record::Reader& reader) {
  RunData run;
  run.folder = reader.folder();
  run.name = name_of(run.folder);
  for (auto& [key, value] : reader.all_meta()) {
    run.meta[key] = std::move(value);
  }
  return run;
}

std::vector<std::pair<record::Series, std::vector<record::Point>>> read_series(const record::Reader& reader) {
  std::vector<std::pair<record::Series, std::vector<record::Point>>> all;
  for (const record::Series& series : reader.all_series()) {
    all.emplace_back(series, reader.points(series));
  }
  return all;
}

}  // namespace

RunData load_run(const record::Reader& reader) {
  RunData run = load_meta(reader);
  // Steps and series are most of a record. Each is read through its own connection, at the same time where a thread
  // can be had.
  auto series = std::async([&] { return read_series(record::Reader(reader.file())); });
  run.steps = reader.steps();
  run.spans = reader.spans();
  run.notes = reader.notes();
  run.settings = as_parsed(reader.settings(), run.notes);
  for (const std::string& name : reader.metric_names()) {
    run.metrics[name] = reader.metrics(name);
  }
  run.series = series.get();
  tidy(run);
  return run;
}

RunData load_facts(const record::Reader& reader) {
  RunData run = load_meta(reader);
  run.notes = reader.notes();
  run.settings = as_parsed(reader.settings(), run.notes);
  tidy(run);
  return run;
}

RunData load_series(const record::Reader& reader, const std::vector<std::string_view>& names) {
  RunData run = load_meta(reader);
  for (const record::Series& series : reader.all_series()) {
    if (std::find(names.begin(), names.end(), series.name) != names.end()) {
      run.series.emplace_back(series, reader.points(series));
    }
  }
  tidy(run);
  return run;
}

RunData load_run(const std::filesystem::path& path) { return load_run(record::Reader(path)); }

}  // namespace unidle::account
