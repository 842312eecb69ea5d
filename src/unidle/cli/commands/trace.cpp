// unidle trace: what a profiler window shows.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/terminal.h"
#include "unidle/cli/subcommand.h"
#include "unidle/logs/sniff.h"
#include "unidle/record/record.h"
#include "unidle/trace/document.h"
#include "unidle/trace/recorded.h"

namespace unidle::cli::commands {

namespace {

namespace fs = std::filesystem;

constexpr const char* kHint = "unidle run --trace 10 -- python train.py records one";

struct Options {
  std::string what;
  std::string format = "text";
};

std::vector<trace::TraceSummary> summaries_of(const Options& options) {
  const fs::path what = options.what.empty() ? record::latest_run_folder() : fs::path(options.what);
  if (!options.what.empty() && !fs::is_directory(what) && logs::sniff(what) != logs::Kind::kRecord) {
    Progress progress("reading", fs::file_size(what));
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

int run(const Options& options) {
  const std::vector<trace::TraceSummary> summaries = summaries_of(options);
  if (options.format == "json") {
    nlohmann::json document = {{"schema", "unidle.traces/1"}, {"traces", nlohmann::json::array()}};
    for (const trace::TraceSummary& summary : summaries) {
      document["traces"].push_back(trace::to_json(summary));
    }
    fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  for (const trace::TraceSummary& summary : summaries) {
    fmt::print("{}{}", &summary == summaries.data() ? "" : "\n", trace::to_text(summary, terminal_width(stdout)));
  }
  return 0;
}

std::function<int()> setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("record", options->what,
                 "A record's folder or its record.db, or a torch profiler trace (Chrome JSON, also gzip); the latest "
                 "record by default");
  app.add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  return [options] { return run(*options); };
}

}  // namespace

const Subcommand& trace() {
  static const Subcommand kCommand{
      "trace",
      "Show what a profiler window of a run, or a trace file, tells about the device",
      "Examples:\n"
      "  unidle run --trace 10 -- python train.py && unidle trace\n"
      "  unidle trace worker0.pt.trace.json.gz --format json",
      setup,
  };
  return kCommand;
}

}  // namespace unidle::cli::commands
