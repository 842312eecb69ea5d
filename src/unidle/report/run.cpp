#include "unidle/report/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "unidle/base/json.h"
#include "unidle/diagnose/as_parsed.h"
#include "unidle/trace/recorded.h"

namespace unidle::report {

namespace {

// Any honest clock reading is far below; sums of two of them cannot overflow.
constexpr std::int64_t kLatestNs = std::int64_t{1} << 61;

bool possible(std::int64_t t_ns, std::int64_t duration_ns) {
  return t_ns >= 0 && t_ns <= kLatestNs && duration_ns >= 0 && duration_ns <= kLatestNs;
}

bool possible(const record::Step& step) {
  const auto part_possible = [](const std::optional<std::int64_t>& part) {
    return !part || (*part >= 0 && *part <= kLatestNs);
  };
  return possible(step.t_ns, step.duration_ns) && step.samples >= 0 && step.samples <= kLatestNs &&
         (!step.samples_before || (*step.samples_before >= 0 && *step.samples_before <= kLatestNs)) &&
         part_possible(step.input_ns) && part_possible(step.transfer_ns) && part_possible(step.forward_ns) &&
         part_possible(step.backward_ns) && part_possible(step.optimizer_ns) && part_possible(step.sync_ns);
}

/// A truncated or foreign meta value must not stop the report.
std::optional<std::int64_t> meta_time(const RunData& run, std::string_view key) {
  const auto found = run.meta.find(key);
  if (found == run.meta.end() || !found->is_number_integer()) {
    return std::nullopt;
  }
  const auto value = found->get<std::int64_t>();
  return possible(value, 0) ? std::optional(value) : std::nullopt;
}

std::size_t drop_impossible(RunData& run) {
  std::size_t dropped = std::erase_if(run.steps, [](const auto& step) { return !possible(step); });
  dropped += std::erase_if(run.spans, [](const auto& span) { return !possible(span.t_ns, span.duration_ns); });
  for (auto& [name, values] : run.metrics) {
    dropped += std::erase_if(values, [](const auto& metric) {
      return !possible(metric.t_ns, 0) || metric.samples < 0 || metric.samples > kLatestNs || !workable(metric.value);
    });
  }
  for (auto& [series, points] : run.series) {
    dropped +=
        std::erase_if(points, [](const auto& point) { return !possible(point.t_ns, 0) || !workable(point.value); });
  }
  return dropped;
}

void sort_by_time(RunData& run) {
  const auto earlier = [](const auto& a, const auto& b) { return a.t_ns < b.t_ns; };
  std::stable_sort(run.steps.begin(), run.steps.end(), earlier);
  std::stable_sort(run.spans.begin(), run.spans.end(), earlier);
  for (auto& [name, values] : run.metrics) {
    std::stable_sort(values.begin(), values.end(), earlier);
  }
  for (auto& [series, points] : run.series) {
    std::stable_sort(points.begin(), points.end(), earlier);
  }
}

/// Ranks of one job step side by side: one of them gives the times, all of them the samples.
void keep_reference_process(RunData& run) {
  std::map<std::int64_t, std::size_t> counts;
  for (const auto& step : run.steps) {
    ++counts[step.process];
  }
  if (counts.size() < 2) {
    return;
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::int64_t reference = most->first;
  const auto is_reference = [&](const auto& step) { return step.process == reference; };
  const auto first = std::find_if(run.steps.begin(), run.steps.end(), is_reference);
  const auto last = std::find_if(run.steps.rbegin(), run.steps.rend(), is_reference);
  double own = 0;
  double all = 0;
  for (const auto& step : run.steps) {
    const auto samples = static_cast<double>(step.samples);
    if (step.t_ns >= first->t_ns && step.t_ns <= last->t_ns) {
      all += samples;
      own += is_reference(step) ? samples : 0;
    }
  }
  run.rank_factor = own > 0 ? all / own : 1;
  std::erase_if(run.steps, [&](const auto& step) { return !is_reference(step); });
  std::erase_if(run.spans, [&](const auto& span) { return span.process != reference; });
}

void find_ends(RunData& run) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = 0;
  const auto see = [&](std::int64_t begin, std::int64_t end) {
    first = std::min(first, begin);
    last = std::max(last, end);
  };
  for (const auto& step : run.steps) {
    see(step.t_ns, step.t_ns + step.duration_ns);
  }
  for (const auto& span : run.spans) {
    see(span.t_ns, span.t_ns + span.duration_ns);
  }
  for (const auto& [series, points] : run.series) {
    if (!points.empty()) {
      see(points.front().t_ns, points.back().t_ns);
    }
  }
  const auto start = meta_time(run, record::meta::kStartNs);
  const auto end = meta_time(run, record::meta::kEndNs);
  run.start_ns = start.value_or(first == std::numeric_limits<std::int64_t>::max() ? 0 : first);
  run.end_ns = std::max(run.start_ns, end.value_or(last));
  if (!end) {
    run.missing.emplace_back(
        "The record has no end: the run was cut off or is still going on. Times are up to the "
        "last thing seen.");
  }
}

void say_what_is_missing(RunData& run, std::size_t dropped) {
  if (dropped > 0) {
    run.missing.push_back(fmt::format("{} rows with impossible times or values were left out.", dropped));
  }
  if (run.steps.empty()) {
    run.missing.emplace_back("No training step was seen, so there is no breakdown of the step and no throughput.");
  } else if (run.steps.size() < 20) {
    run.missing.push_back(fmt::format("Only {} training steps were seen: figures are rough.", run.steps.size()));
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
    run.missing.push_back(fmt::format("{:.0f} events were dropped because the ring was full.", lost->get<double>()));
  }
}

}  // namespace

std::string RunData::meta_text(std::string_view key) const { return text_in(meta, key); }

std::vector<const std::vector<record::Point>*> RunData::points(std::string_view series_name) const {
  std::vector<const std::vector<record::Point>*> found;
  for (const auto& [description, values] : series) {
    if (description.name == series_name && !values.empty()) {
      found.push_back(&values);
    }
  }
  return found;
}

double RunData::cpus() const {
  const auto host = meta.find(record::meta::kHost);
  if (host == meta.end() || !host->is_object()) {
    return 0;
  }
  const auto number = [&](const char* key) {
    const auto found = host->find(key);
    return found != host->end() && found->is_number() ? found->get<double>() : 0.0;
  };
  const double allowed = number("cpus_allowed");
  const double quota = number("cpu_quota");
  if (allowed > 0 && quota > 0) {
    return std::min(allowed, quota);
  }
  return std::max({allowed, quota, 0.0});
}

bool workable(double value) { return std::abs(value) < 1e30; }

void tidy(RunData& run) {
  if (!run.meta.is_object()) {
    run.meta = nlohmann::json::object();
  }
  const std::size_t dropped = drop_impossible(run);
  sort_by_time(run);
  keep_reference_process(run);
  find_ends(run);
  say_what_is_missing(run, dropped);
}

RunData load_run(const std::filesystem::path& path) {
  const record::Reader reader(path);
  RunData run;
  run.folder = reader.folder();
  const auto full = std::filesystem::absolute(run.folder).lexically_normal();
  run.name = (full.has_filename() ? full : full.parent_path()).filename().string();
  for (const std::string_view key :
       {record::meta::kCommand, record::meta::kFolder, record::meta::kStartedUtc, record::meta::kStartNs,
        record::meta::kEndNs, record::meta::kExit, record::meta::kOutcome, record::meta::kTier, record::meta::kHost,
        record::meta::kGpus, record::meta::kProblems, record::meta::kDropped, std::string_view("changes"),
        std::string_view("trials"), std::string_view("verification")}) {
    if (auto value = reader.meta(key)) {
      run.meta[std::string(key)] = std::move(*value);
    }
  }
  run.steps = reader.steps();
  run.spans = reader.spans();
  run.settings = diagnose::as_parsed(reader.settings(), reader.notes());
  for (const std::string& name : reader.metric_names()) {
    run.metrics[name] = reader.metrics(name);
  }
  for (const record::Series& series : reader.all_series()) {
    run.series.emplace_back(series, reader.points(series));
  }
  tidy(run);
  if (!run.steps.empty()) {
    run.attached_ns = trace::attached_since(reader.notes(), run.steps.front().process);
  }
  return run;
}

}  // namespace unidle::report
