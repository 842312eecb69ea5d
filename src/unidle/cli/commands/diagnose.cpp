#include "unidle/diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "unidle/base/terminal.h"
#include "unidle/cli/subcommand.h"
#include "unidle/diagnose/pages.h"
#include "unidle/record/record.h"

namespace unidle::cli::commands {

namespace {

struct Options {
  std::string record;
  std::string format = "text";
  std::string fail_on;
  std::string explain;
  bool rules_markdown = false;
};

bool reached(const diagnose::Diagnosis& diagnosis, const std::string& level) {
  if (level.empty()) {
    return false;
  }
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(), [&](const diagnose::Finding& finding) {
    return level == "info" || (level == "warning" && finding.severity != diagnose::Severity::kInfo) ||
           (level == "critical" && finding.severity == diagnose::Severity::kCritical);
  });
}

int run(const Options& options) {
  if (options.rules_markdown) {
    fmt::print("{}", diagnose::rules_markdown());
    return 0;
  }
  const int width = terminal_width(stdout);
  if (!options.explain.empty()) {
    fmt::print("{}", diagnose::explain(options.explain, width));
    return 0;
  }
  const diagnose::Diagnosis diagnosis = diagnose::diagnose_record(
      options.record.empty() ? record::latest_run_folder() : std::filesystem::path(options.record));
  if (options.format == "json") {
    // Captured output need not be UTF-8.
    fmt::print("{}\n", diagnose::to_json(diagnosis).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", diagnose::to_text(diagnosis, width, use_colour(stdout)));
  }
  return diagnosis.verdict == diagnose::Verdict::kFailed || reached(diagnosis, options.fail_on) ? 1 : 0;
}

std::function<int()> setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("record", options->record, "A record's folder or its record.db; the latest record by default");
  app.add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--fail-on", options->fail_on, "Exit with 1 when a finding of this severity or above is there")
      ->check(CLI::IsMember({"info", "warning", "critical"}));
  app.add_option("--explain", options->explain, "Explain one rule and leave");
  app.add_flag("--rules-markdown", options->rules_markdown)->group("");
  return [options] { return run(*options); };
}

}  // namespace

const Subcommand& diagnose() {
  static const Subcommand kCommand{
      "diagnose",
      "Say why the device idles, ranked by share of wall time",
      "Examples:\n"
      "  unidle diagnose\n"
      "  unidle diagnose .unidle/runs/latest --format json\n"
      "  unidle diagnose --fail-on warning\n"
      "  unidle diagnose --explain loader-no-workers",
      setup,
  };
  return kCommand;
}

}  // namespace unidle::cli::commands
