// `unidle completion`: shell completion scripts, made from the same option tables that the parser uses.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <vector>

#include "unidle/base/terminal.h"
#include "unidle/cli/option_names.h"
#include "unidle/cli/subcommand.h"

namespace unidle::cli::commands {

namespace {

/// "stats verify ", for commands that have subcommands.
std::string action_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* sub : app.get_subcommands({})) {
    names += sub->get_name() + " ";
  }
  return names;
}

/// Commands that people call; one without a group is started by programs.
std::vector<const CLI::App*> commands_of(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

/// The completions of unidle-train: its options, KEY= for each setting and KEY=VALUE for choices. The script asks
/// unidle-train while the user types, since this program does not link torch. Bash splits words at "=", zsh does not.
constexpr const char* kBashTrain = R"sh(_unidle_train() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} key="" one
  if [ "$word" = "=" ]; then
    key="$before=" word=""
  elif [ "$before" = "=" ]; then
    key="${COMP_WORDS[COMP_CWORD - 2]}="
  fi
  COMPREPLY=()
  for one in $(compgen -W "$("${COMP_WORDS[0]}" train words 2>/dev/null)" -- "$key$word"); do
    [[ $key$word == *=* || $one != *=?* ]] && [[ $word == -* || $one != -* ]] && [ "$one" != "$key" ] &&
      COMPREPLY+=("${one#"$key"}")
  done
  if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
  if [ -z "$key" ] && [[ $word != -* ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -- "$word"))
  fi
}
)sh";

/// Bash, and zsh through bashcompinit. Files are completed wherever no option is being typed.
std::string bash_script(const CLI::App& root) {
  std::string commands;
  std::string cases;
  for (const CLI::App* sub : commands_of(root)) {
    commands += sub->get_name() + " ";
    cases += fmt::format("    {}) words=\"{}\" actions=\"{}\" ;;\n", sub->get_name(),
                         fmt::join(option_names(*sub), " "), action_names(*sub));
  }
  return kBashTrain + fmt::format(R"(_unidle() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words="" actions=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{}" -- "$word")); return
  fi
  if [ "${{COMP_WORDS[1]}}" = train ]; then
    _unidle_train; return
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
  std::string script =
      "complete -c unidle -n \"__fish_seen_subcommand_from train\" -a \"(unidle train words 2>/dev/null)\"\n";
  for (const CLI::App* sub : commands_of(root)) {
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
