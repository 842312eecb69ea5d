// unidle trace: shows a profiler window.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/log.h"
#include "unidle/base/terminal.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/subcommand.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/logs/sniff.h"
#include "unidle/observe/recovery.h"
#include "unidle/record/record.h"
#include "unidle/trace/document.h"
#include "unidle/trace/recorded.h"
#include "unidle/trace/timeline.h"

namespace unidle::cli::commands {

namespace {

namespace fs = std::filesystem;

constexpr const char* kHint = "unidle run --trace 10 -- python train.py records one";

struct Options {
  std::vector<std::string> what;
  std::string format = "text";
  std::string output;
  std::string language;

  Language speaks() const { return format == "json" ? Language::kEnglish : chosen_language(language); }
};

bool is_record(const fs::path& what) {
  return fs::is_directory(status_of(what)) || logs::sniff(what).kind == logs::Kind::kRecord;
}

/// The findings of the diagnosis, placed at the begin of training: a cause holds for the whole run.
std::vector<trace::Instant> findings_of(const fs::path& what, const record::Reader& reader) {
  std::int64_t t_ns = reader.time(record::meta::kStartNs).value_or(0);
  for (const record::Span& span : reader.spans()) {
    t_ns = span.kind == "startup" ? span.t_ns + span.duration_ns : t_ns;
  }
  std::vector<trace::Instant> instants;
  for (const diagnose::Finding& finding : diagnose::diagnose_record(what).findings) {
    nlohmann::json details = {{"severity", diagnose::to_string(finding.severity)}, {"evidence", finding.evidence}};
    instants.push_back({t_ns, finding.id, std::move(details)});
  }
  return instants;
}

int write_timeline(const fs::path& what, const fs::path& output, Language language) {
  if (!is_record(what)) {
    throw Error(ErrorCode::kUsage, what.string(), "is not an unidle record",
                "--output takes a record to other programs' format");
  }
  const record::Reader reader(what);
  const trace::Timeline timeline = trace::write_timeline(reader, findings_of(what, reader), output);
  for (const std::string& left_out : timeline.left_out) {
    say(translate(language, "left out: {}", left_out));
  }
  say(translate(language, "{} events; open the file in https://ui.perfetto.dev or chrome://tracing", timeline.events));
  print_to(stdout, "{}\n", output.string());
  return 0;
}

std::vector<trace::TraceSummary> summaries_of(const fs::path& what, Language language) {
  if (!is_record(what)) {
    std::error_code unknown;
    Progress progress(std::string(translate(language, "reading")), fs::file_size(what, unknown));
    logs::Source source(what, [&](std::uint64_t taken, std::uint64_t) { progress.update(taken); });
    return {trace::read_trace(source)};
  }
  const record::Reader reader(what);
  std::vector<trace::TraceSummary> summaries;
  for (trace::RecordedTrace& recorded : trace::recorded_traces(reader)) {
    summaries.push_back(std::move(recorded.summary));
  }
  if (summaries.empty()) {
    const std::string why = trace::why_no_trace(reader);
    throw Error(ErrorCode::kInput, what.string(), "holds no profiler window" + (why.empty() ? "" : ": " + why), kHint);
  }
  return summaries;
}

std::vector<trace::TraceSummary> read_all(const std::vector<fs::path>& what, Language language) {
  std::vector<trace::TraceSummary> summaries;
  for (const fs::path& one : what) {
    for (trace::TraceSummary& summary : summaries_of(one, language)) {
      summaries.push_back(std::move(summary));
    }
  }
  return summaries;
}

int run(const Options& options) {
  std::vector<fs::path> what;
  std::ranges::transform(options.what, std::back_inserter(what), record::find_run);
  if (what.empty()) {
    what.push_back(record::latest_run_folder());
  }
  std::for_each(what.begin(), what.end(), observe::recover);
  if (!options.output.empty()) {
    if (what.size() > 1) {
      throw Error(ErrorCode::kUsage, "--output", "takes one record, found two", "name the record to write");
    }
    return write_timeline(what.front(), options.output, options.speaks());
  }
  const std::vector<trace::TraceSummary> summaries = read_all(what, options.speaks());
  if (options.format == "json") {
    nlohmann::json document = {{"schema", "unidle.traces/1"}, {"traces", nlohmann::json::array()}};
    for (const trace::TraceSummary& summary : summaries) {
      document["traces"].push_back(trace::to_json(summary));
    }
    print_to(stdout, "{}\n", json_text(document));
    return 0;
  }
  if (what.size() == 2 && summaries.size() == 2) {
    print_to(stdout, "{}",
             trace::comparison_text(summaries[0], summaries[1], terminal_width(stdout), options.speaks()));
    return 0;
  }
  for (const trace::TraceSummary& summary : summaries) {
    print_to(stdout, "{}{}", &summary == summaries.data() ? "" : "\n",
             trace::to_text(summary, terminal_width(stdout), options.speaks()));
  }
  return 0;
}

std::function<int()> setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option(
         "record", options->what,
         "A record's folder, its record.db or its name, or a torch profiler trace (Chrome JSON, also gzip); the latest "
         "record by default. Give two to compare them")
      ->expected(0, 2);
  app.add_option("-o,--output", options->output,
                 "Write the whole record as a timeline for Perfetto and chrome://tracing; .gz compresses it")
      ->type_name("FILE.json[.gz]");
  app.add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_language_option(app, options->language);
  return [options] { return run(*options); };
}

}  // namespace

const Subcommand& trace() {
  static const Subcommand kCommand{
      "trace",
      "Analyse a profiler window of a run, or a trace file",
      "Examples:\n"
      "  unidle run --trace 10 -- python train.py && unidle trace\n"
      "  unidle trace .unidle/runs/latest -o timeline.json.gz\n"
      "  unidle trace worker0.pt.trace.json.gz --format json\n"
      "  unidle trace before.json.gz after.json.gz",
      setup,
  };
  return kCommand;
}

}  // namespace unidle::cli::commands
