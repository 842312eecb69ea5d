// unidle compare: two records side by side.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "unidle/base/error.h"
#include "unidle/base/terminal.h"
#include "unidle/cli/subcommand.h"
#include "unidle/report/comparison.h"

namespace unidle::cli::commands {

namespace {

struct Options {
  std::string a;
  std::string b;
  std::string format = "text";
  double tolerance_percent = 5;
};

void refuse_config(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".yaml" || extension == ".yml") {
    throw Error(ErrorCode::kUsage, path, "compare takes two records, and this is a config file",
                "run each config with `unidle run -o RECORD -- CMD` and compare the records");
  }
}

int run(const Options& options) {
  refuse_config(options.a);
  refuse_config(options.b);
  const report::Comparison comparison =
      report::compare(report::load_run(options.a), report::load_run(options.b), options.tolerance_percent / 100);
  if (options.format == "json") {
    fmt::print("{}\n", report::to_json(comparison).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", report::to_text(comparison, terminal_width(stdout), use_colour(stdout)));
  }
  return comparison.regression() ? 1 : 0;
}

std::function<int()> setup(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("A", options->a, "The record before: its folder or the record.db in it")->required();
  app.add_option("B", options->b, "The record after")->required();
  app.add_option("--format", options->format, "How to print the answer")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--tolerance", options->tolerance_percent,
                 "Per cent by which B may be slower before it counts as a regression")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  return [options] { return run(*options); };
}

}  // namespace

const Subcommand& compare() {
  static const Subcommand kCommand = {
      "compare", "Two records side by side: is the second faster, and does it learn as well?",
      "Examples:\n"
      "  unidle compare .unidle/runs/before .unidle/runs/after\n"
      "  unidle compare before after --format json --tolerance 2\n\n"
      "Exit code 1: B is a regression (slower beyond the tolerance, a higher loss, a PSNR more than 0.1 dB lower,\n"
      "or a run that failed).",
      setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
