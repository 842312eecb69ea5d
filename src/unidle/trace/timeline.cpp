#include "unidle/trace/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "unidle/record/note_types.h"
#include "unidle/trace/detail/event_file.h"
#include "unidle/trace/detail/events.h"
#include "unidle/trace/recorded.h"

namespace unidle::trace {

namespace {

using detail::EventFile;
using detail::kNoProcess;
using nlohmann::json;

// Tracks of a process; threads of profiler windows have their own ids.
constexpr std::int64_t kPhases = kNoProcess;
constexpr std::int64_t kSteps = kNoProcess + 1;
constexpr std::int64_t kInSteps = kNoProcess + 2;
// Ids for tracks that belong to no process.
constexpr std::int64_t kHost = kNoProcess;
constexpr std::int64_t kMetrics = kNoProcess + 1;
constexpr std::int64_t kDevices = kNoProcess + 2;

class Exporter {
 public:
  Exporter(const record::Reader& record, EventFile& file)
      : record_(record), file_(file), zero_ns_(record.time(record::meta::kStartNs).value_or(0)) {}

  void phases() {
    for (const record::Span& span : record_.spans()) {
      track(span.process, kPhases);
      const json args = span.samples > 0 ? json{{"samples", span.samples}} : json();
      file_.slice(span.process, kPhases, span.kind, at(span.t_ns), span.duration_ns, args);
    }
  }

  void steps() {
    for (const record::Step& step : record_.steps()) {
      track(step.process, kSteps);
      json args = {{"samples", step.samples}};
      if (step.micro_batches > 1) {
        args["micro_batches"] = step.micro_batches;
      }
      if (step.syncs) {
        args["host waits"] = *step.syncs;
      }
      if (step.loss && std::isfinite(*step.loss)) {
        args["loss"] = *step.loss;
      }
      file_.slice(step.process, kSteps, fmt::format("step {}", step.index), at(step.t_ns), step.duration_ns, args);
      parts(step);
    }
  }

  void loaders() {
    for (const record::SampleWork& work : record_.sample_work()) {
      process(work.process);
      file_.counter(work.process, fmt::format("samples in work (thread {})", work.thread), at(work.t_ns),
                    static_cast<double>(work.busy_ns) * 1e-9);
    }
  }

  void series() {
    for (const record::Series& series : record_.all_series()) {
      if (series.subject.starts_with("pid ")) {
        durations(series, std::atoll(series.subject.c_str() + 4));
        continue;
      }
      const std::int64_t pid = place_of(series);
      const bool device = pid >= kDevices;
      const std::string subject = series.subject.empty() || device ? "" : " " + series.subject;
      const std::string unit = series.unit.empty() ? "" : " (" + series.unit + ")";
      for (const record::Point& point : record_.points(series)) {
        file_.counter(pid, series.name + subject + unit, at(point.t_ns), point.value);
      }
    }
    const std::vector<std::string> metrics = record_.metric_names();
    if (!metrics.empty()) {
      file_.name(kMetrics, 0, "metrics", 2);
    }
    for (const std::string& name : metrics) {
      for (const record::Metric& metric : record_.metrics(name)) {
        file_.counter(kMetrics, name, at(metric.t_ns), metric.value);
      }
    }
  }

  void instants(const std::vector<Instant>& instants) {
    for (const record::Note& note : record_.notes()) {
      if (record::is_of(note, record::NoteType::kException)) {
        process(note.process);
        file_.instant(note.process, text_in(note.body, "class") + ": " + text_in(note.body, "message"), at(note.t_ns),
                      "p", {{"where", text_in(note.body, "where")}});
      }
    }
    for (const Instant& instant : instants) {
      file_.instant(kHost, instant.name, at(instant.t_ns), "g", instant.details);
    }
  }

  /// Writes the events of a window, shifted to our clock. Returns the reason on failure; events written before it stay.
  std::string window(const RecordedTrace& recorded) {
    if (!recorded.summary.zero_ns) {
      return "its clock is not tied to the record's";
    }
    if (std::error_code unknown; std::filesystem::is_symlink(recorded.file, unknown)) {
      return "is a link, not the file that was recorded";
    }
    process(recorded.process);
    const double shift_us = static_cast<double>(*recorded.summary.zero_ns - zero_ns_) * 1e-3;
    try {
      logs::Source source(recorded.file);
      detail::for_each_raw_event(source, [&](json& event) { window_event(event, shift_us); });
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kIo) {
        throw;
      }
      return error.message();
    }
    return "";
  }

 private:
  std::int64_t at(std::int64_t t_ns) const { return t_ns - zero_ns_; }

  void process(std::int64_t pid) {
    if (tracks_.emplace(pid, 0).second) {
      file_.name(pid, 0, fmt::format("process {}", pid), 0);
    }
  }

  void track(std::int64_t pid, std::int64_t tid) {
    process(pid);
    if (tracks_.emplace(pid, tid).second) {
      file_.name(pid, tid, tid == kPhases ? "phases" : tid == kSteps ? "steps" : "inside steps");
    }
  }

  /// The record has the durations of the parts, not their begins: they are drawn one after the other.
  void parts(const record::Step& step) {
    const std::array<std::pair<const char*, std::optional<std::int64_t>>, 6> all = {{{"input", step.input_ns},
                                                                                     {"transfer", step.transfer_ns},
                                                                                     {"forward", step.forward_ns},
                                                                                     {"backward", step.backward_ns},
                                                                                     {"optimizer", step.optimizer_ns},
                                                                                     {"wait", step.sync_ns}}};
    std::int64_t left_ns = step.duration_ns;
    for (const auto& [name, part_ns] : all) {
      const std::int64_t length_ns = std::min(part_ns.value_or(0), left_ns);
      if (length_ns > 0) {
        file_.slice(step.process, kSteps, name, at(step.t_ns + step.duration_ns - left_ns), length_ns);
        left_ns -= length_ns;
      }
    }
  }

  /// Series of a process are durations in seconds, at the time they began.
  void durations(const record::Series& series, std::int64_t pid) {
    for (const record::Point& point : record_.points(series)) {
      if (std::isfinite(point.value) && point.value > 0 && point.value < 1e9) {
        track(pid, kInSteps);
        file_.slice(pid, kInSteps, series.name, at(point.t_ns), std::llround(point.value * 1e9));
      }
    }
  }

  std::int64_t place_of(const record::Series& series) {
    if (!series.name.starts_with("gpu.") && !series.name.starts_with("cupti.")) {
      if (tracks_.emplace(kHost, 0).second) {
        file_.name(kHost, 0, "host", 1);
      }
      return kHost;
    }
    const auto next = kDevices + static_cast<std::int64_t>(devices_.size());
    const auto [found, added] = devices_.emplace(series.subject, next);
    if (added) {
      file_.name(found->second, 0, series.subject, 3);
    }
    return found->second;
  }

  void window_event(json& event, double shift_us) {
    const auto phase = text_in(event, "ph");
    if (phase == "M") {
      // The name that we gave the process stays.
      const bool ours = event.contains("pid") && event["pid"].is_number_integer() &&
                        tracks_.contains({event["pid"].get<std::int64_t>(), 0});
      if (ours && text_in(event, "name").starts_with("process_")) {
        return;
      }
      event.erase("ts");
    } else if (const auto ts = event.find("ts"); ts != event.end() && ts->is_number()) {
      *ts = std::round((ts->get<double>() + shift_us) * 1e3) / 1e3;
    } else {
      return;
    }
    file_.raw(event);
  }

  const record::Reader& record_;
  EventFile& file_;
  std::int64_t zero_ns_;
  std::set<std::pair<std::int64_t, std::int64_t>> tracks_;
  std::map<std::string, std::int64_t> devices_;
};

json about(const record::Reader& record) {
  json about = {{"tool", "unidle"}, {"record", record.folder().filename().string()}};
  for (const std::string_view key : {record::meta::kCommand, record::meta::kStartedUtc, record::meta::kTier}) {
    about[std::string(key)] = record.meta(key).value_or(nullptr);
  }
  return about;
}

}  // namespace

Timeline write_timeline(const record::Reader& record, const std::vector<Instant>& instants,
                        const std::filesystem::path& to) {
  EventFile file(to);
  Exporter exporter(record, file);
  exporter.phases();
  exporter.steps();
  exporter.loaders();
  exporter.series();
  exporter.instants(instants);
  Timeline timeline;
  for (const RecordedTrace& recorded : recorded_traces(record)) {
    if (const std::string why = exporter.window(recorded); !why.empty()) {
      timeline.left_out.push_back(recorded.file.filename().string() + ": " + why);
    }
  }
  file.close(about(record));
  timeline.events = file.events();
  return timeline;
}

}  // namespace unidle::trace
