// `unidle completion`: shell completion scripts, made from the same option tables that the parser uses.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "unidle/cli/subcommand.h"

#include "unidle/base/terminal.h"

namespace unidle::cli::commands {

namespace {

/// With those of its own subcommands.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) {
    for (std::string& name : option_names(*sub)) {
      names.push_back(std::move(name));
    }
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) {
      continue;  // hidden
    }
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
    for (const std::string& name : option->get_snames()) {
      names.push_back("-" + name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// "stats verify ", for commands that have commands of their own.
std::string action_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* sub : app.get_subcommands({})) {
    names += sub->get_name() + " ";
  }
  return names;
}

/// Bash, and zsh through bashcompinit. Files are completed wherever no option is being typed.
std::string bash_script(const CLI::App& root) {
  std::string commands;
  std::string cases;
  for (const CLI::App* sub : root.get_subcommands({})) {
    commands += sub->get_name() + " ";
    cases += fmt::format("    {}) words=\"{}\" actions=\"{}\" ;;\n", sub->get_name(),
                         fmt::join(option_names(*sub), " "), action_names(*sub));
  }
  return fmt::format(R"(_unidle() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words="" actions=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{}" -- "$word")); return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  elif [ "$COMP_CWORD" -eq 2 ] && [ -n "$actions" ]; then
    COMPREPLY=($(compgen -W "$actions" -- "$word"))
  else
    compopt -o default 2>/dev/null; COMPREPLY=()
  fi
}}
complete -F _unidle unidle
)",
                     commands, cases);
}

std::string zsh_script(const CLI::App& root) {
  return "autoload -U +X bashcompinit && bashcompinit\n" + bash_script(root);
}

std::string fish_script(const CLI::App& root) {
  std::string script;
  for (const CLI::App* sub : root.get_subcommands({})) {
    script += fmt::format("complete -c unidle -n __fish_use_subcommand -a {} -d \"{}\"\n", sub->get_name(),
                          sub->get_description());
    if (const std::string actions = action_names(*sub); !actions.empty()) {
      script +=
          fmt::format("complete -c unidle -n \"__fish_seen_subcommand_from {}\" -a \"{}\"\n", sub->get_name(), actions);
    }
    for (const std::string& name : option_names(*sub)) {
      const bool is_long = name.starts_with("--");
      script += fmt::format("complete -c unidle -n \"__fish_seen_subcommand_from {}\" -{} {}\n", sub->get_name(),
                            is_long ? "l" : "s", name.substr(is_long ? 2 : 1));
    }
  }
  return script;
}

std::function<int()> setup(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [&app, shell] {
    static const std::map<std::string, std::function<std::string(const CLI::App&)>> kScripts = {
        {"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    print_to(stdout, "{}", kScripts.at(*shell)(*app.get_parent()));
    return 0;
  };
}

}  // namespace

const Subcommand& completion() {
  static const Subcommand kCommand = {"completion", "Print a shell completion script",
                                      "Examples:\n  source <(unidle completion bash)\n  unidle completion fish > "
                                      "~/.config/fish/completions/unidle.fish",
                                      setup};
  return kCommand;
}

}  // namespace unidle::cli::commands
