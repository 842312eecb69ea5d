#include "unidle/cli/subcommand.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "unidle/base/abandonable_thread.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/base/nearest.h"
#include "unidle/base/standard_streams.h"
#include "unidle/base/terminal.h"
#include "unidle/base/version.h"
#include "unidle/cli/help_format.h"
#include "unidle/cli/parser_output.h"

namespace unidle::cli {

namespace {

constexpr const char* kAbout =
    "unidle sees why a training run leaves its GPU idle, fixes it, and proves the gain.\n\n"
    "  unidle run -- python train.py  observe a training command\n"
    "  unidle diagnose                say why its device idles\n"
    "  unidle fix                     try the fix, prove the gain";

/// One line on stderr, for scripts and people alike.
void print_error(const std::exception& failure) { say(failure.what()); }

bool has_command(std::string_view name) {
  const auto& commands = all_commands();
  return std::any_of(commands.begin(), commands.end(), [&](const Subcommand* each) { return each->name == name; });
}

/// Names the unknown command; CLI11 would only say that a subcommand is required.
void refuse_unknown_command(const std::string& word) {
  if (word.starts_with('-') || has_command(word)) {
    return;
  }
  std::vector<std::string> names;
  for (const Subcommand* command : all_commands()) {
    names.emplace_back(command->name);
  }
  throw Error(ErrorCode::kUsage, word, "unknown command", nearest_or(word, names, "unidle --help lists them"));
}

/// What follows the name of the program: `help diagnose` as `diagnose --help`, `version` as `--version`.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  } else if (words == std::vector<std::string>{"version"}) {
    words = {"--version"};
  }
  return words;
}

/// What the parser recognised: `app`, its command, and that command's own.
std::vector<const CLI::App*> recognised(const CLI::App& app) {
  std::vector<const CLI::App*> found;
  for (std::vector<const CLI::App*> next = {&app}; !next.empty();) {
    found.push_back(next.front());
    next = found.back()->get_subcommands([](const CLI::App* sub) { return sub->parsed(); });
  }
  return found;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

/// CLI11 speaks of what is missing even if the reason is a misspelt option.
std::string refusal(const CLI::App* app, const CLI::Error& error) {
  const std::vector<const CLI::App*> commands = recognised(*app);
  std::string see = "see";
  for (const CLI::App* command : commands) {
    see += " " + command->get_name();
  }
  see += " --help";
  const std::vector<std::string> left = app->remaining(true);
  const auto option = std::ranges::find_if(left, [](const std::string& word) { return word.starts_with("-"); });
  if (option == left.end() || *option == "--") {  // what follows is the command
    return fmt::format("unidle: {} ({})\n", error.what(), see);
  }
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("unidle: {}: unknown option ({})\n", name, nearest_or(name, options_of(*commands.back()), see));
}

/// All output is flushed when this returns.
int parse_and_run(int argc, char** argv) {
  CLI::App app(kAbout, "unidle");
  app.set_version_flag("--version", fmt::format("unidle {}\n{}", kVersion, kBuild));
  app.require_subcommand(1);
  app.footer("unidle COMMAND --help explains a command, with examples.");
  app.failure_message(refusal);
  app.formatter(std::make_shared<HelpFormat>(terminal_width(stdout)));

  std::function<int()> chosen;
  for (const Subcommand* command : all_commands()) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->footer(command->examples);
    std::function<int()> action = command->setup(*sub);
    sub->callback([&chosen, action = std::move(action)] { chosen = action; });
  }

  std::vector<std::string> words = words_of(argc, argv);
  if (words.empty()) {
    print_to(stdout, "{}", app.help());
    flush_output();
    return 2;
  }
  refuse_unknown_command(words.front());
  int code = 0;
  try {
    std::ranges::reverse(words);  // as CLI11 wants them
    app.parse(std::move(words));
    code = chosen();
  } catch (const CLI::ParseError& error) {
    code = print_parser_message(app, error);
  }
  flush_output();
  return code;
}

int run_command(int argc, char** argv) {
  try {
    init_log();
    return parse_and_run(argc, argv);
  } catch (const Error& error) {
    print_error(error);
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& failure) {
    const Error error = file_system_error(failure);
    print_error(error);
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    say("out of memory");
    return 1;
  } catch (const std::exception& error) {
    print_error(error);
    return 1;
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  open_missing_standard_streams();
  const int code = run_command(argc, argv);
  if (has_abandoned_threads()) {
    end_at_once(code);
  }
  return code;
}

}  // namespace unidle::cli
