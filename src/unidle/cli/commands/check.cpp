// unidle check: the machine's capabilities and problems.
#include "unidle/check/check.h"

#include <fmt/format.h>

#include <memory>

#include "unidle/base/json.h"
#include "unidle/base/terminal.h"
#include "unidle/check/speed.h"
#include "unidle/cli/language_option.h"
#include "unidle/cli/subcommand.h"

namespace unidle::cli::commands {

namespace {

struct Arguments {
  bool speed = false;
  std::string format = "text";
  std::string language;
};

int execute(const Arguments& arguments) {
  const bool json = arguments.format == "json";
  const Language language = json ? Language::kEnglish : chosen_language(arguments.language);
  const nlohmann::json speed = arguments.speed ? check::measure_speed({}) : nlohmann::json(nullptr);
  const check::Machine machine = check::inspect();
  const std::vector<check::Problem> problems = check::find_problems(machine, language);
  if (json) {
    print_to(stdout, "{}\n", json_text(check::to_json(machine, problems, speed)));
  } else {
    print_to(stdout, "{}", check::to_text(machine, problems, speed, terminal_width(stdout), language));
  }
  return check::exit_code(problems);
}

std::function<int()> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_flag("--speed", arguments->speed, "Also measure: arithmetic, copies, disk, decoding (half a minute)");
  app.add_option("--format", arguments->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  add_language_option(app, arguments->language);
  return [arguments] { return execute(*arguments); };
}

}  // namespace

const Subcommand& check() {
  static const Subcommand kCommand = {
      "check", "Say what this machine offers a training run, and what is wrong with it",
      "Exit code: 0 no problem, 1 a warning or worse, 3 --speed needs unidle-train.\n\nExamples:\n"
      "  unidle check\n"
      "  unidle check --speed\n"
      "  unidle check --format json",
      setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
