#include "unidle/diagnose/in_program/own_interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <exception>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/log.h"
#include "unidle/base/numbers.h"
#include "unidle/base/shell.h"
#include "unidle/base/substrings.h"
#include "unidle/diagnose/configured/configured_files.h"
#include "unidle/diagnose/in_program/setting_words.h"
#include "unidle/knobs/config_file.h"
#include "unidle/knobs/interval_names.h"

namespace unidle::diagnose {

namespace fs = std::filesystem;

namespace {

struct Interval {
  std::string file;
  std::string text;
  knobs::Scalar scalar;
  double value = 0;
};

/// Without what follows a # on a line, unless a string may hold it.
std::string without_comments(std::string_view text) {
  std::string found;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    const std::size_t mark = line.find('#');
    found += line.find_first_of("'\"") < mark ? line : line.substr(0, mark);
    found += '\n';
    text.remove_prefix(line.size());
  }
  return found;
}

std::string last_part(const std::string& path) { return path.substr(path.find_last_of("./") + 1); }

/// Whether the run validated about once in so many steps.
bool had_this_interval(double value, const Signals& signals) {
  constexpr double kAbout = 0.1;
  const std::optional<std::string> measured = signals.effective("validation.interval");
  const auto steps = measured ? parse_number<double>(*measured) : std::nullopt;
  return steps && std::abs(value - *steps) <= kAbout * *steps;
}

/// Whether a setting of that name and value is the interval. If the name may also mean a length, the value decides: it
/// has to be the interval that the run had.
bool is_interval(const std::string& name, double value, const Signals& signals) {
  return value >= 1 && (knobs::names_interval_of_validation(name) ||
                        (knobs::may_name_interval_of_validation(name) && had_this_interval(value, signals)));
}

void find_in(const std::string& file, const std::string& text, const Signals& signals, std::vector<Interval>& found) {
  try {
    const knobs::ConfigFile config = knobs::ConfigFile::from_text(text, file);
    for (const knobs::Scalar& scalar : config.scalars()) {
      const auto value = parse_number<double>(scalar.value);
      if (value && scalar.editable && !scalar.inherited && !scalar.is_alias() &&
          is_interval(last_part(scalar.path), *value, signals)) {
        found.push_back({file, text, scalar, *value});
      }
    }
  } catch (const std::exception& failure) {
    spdlog::debug("{}: not searched for a validation interval: {}", file, failure.what());
  }
}

std::vector<Interval> intervals(const Signals& signals, Sources& sources) {
  std::vector<Interval> found;
  const ConfiguredFiles files = configured_files(signals.command, sources.folder());
  for (const auto* each : {&files.configurations, &files.scripts}) {
    for (const fs::path& path : *each) {
      const std::string file = sources.name_of(path);
      if (const std::optional<std::string>& text = sources.text(file)) {
        find_in(file, *text, signals, found);
      }
    }
  }
  return found;
}

/// Whether the command sets the argument whose default this is: "-e 5", "-e5", "--eval-ev 5".
bool is_given(const knobs::Scalar& scalar, const std::vector<std::string>& command) {
  return std::ranges::any_of(scalar.argument, [&](const std::string& flag) {
    return std::any_of(command.begin() + 1, command.end(), [&](const std::string& word) {
      const std::string name = word.substr(0, word.find('='));
      return flag.starts_with("--") ? name.size() > 2 && flag.starts_with(name) : word.starts_with(flag);
    });
  });
}

/// An option of the command that sets the interval.
struct Option {
  std::string name;
  std::size_t at = 0;  // index of the word with the value
  std::string joined;  // what precedes the value in that word: "--eval-every="
  double value = 0;
};

std::vector<Option> options_of(const Signals& signals) {
  const std::vector<std::string>& command = signals.command;
  std::vector<Option> found;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::size_t equals = command[i].find('=');
    const bool joined = equals != std::string::npos;
    if (!joined && !command[i].starts_with('-')) {
      continue;
    }
    const std::size_t at = joined ? i : i + 1;
    const std::string text = at < command.size() ? (joined ? command[i].substr(equals + 1) : command[at]) : "";
    const auto value = parse_number<std::int64_t>(text);  // 1.0 is a part of an epoch
    const std::string name = last_part(command[i].substr(0, equals));
    if (value && is_interval(name, static_cast<double>(*value), signals)) {
      std::erase_if(found, [&](const Option& before) { return before.name == name; });  // the last one counts
      found.push_back({name, at, joined ? command[i].substr(0, equals + 1) : "", static_cast<double>(*value)});
    }
  }
  return found;
}

/// The command with its option set to another value. Nothing when it has none, or several of which not exactly one has
/// the interval of the run.
std::optional<knobs::InProgram> by_option(const Signals& signals, double rarer_by) {
  std::vector<Option> options = options_of(signals);
  if (options.size() > 1) {
    std::erase_if(options, [&](const Option& option) { return !had_this_interval(option.value, signals); });
  }
  if (options.size() != 1) {
    return std::nullopt;
  }
  const Option& option = options.front();
  std::vector<std::string> changed = signals.command;
  const std::string to = fmt::format("{:.0f}", std::ceil(option.value * rarer_by));
  changed[option.at] = option.joined + to;
  return knobs::InProgram{
      .words = option.joined.empty() ? signals.command[option.at - 1] + " " + to : changed[option.at],
      .command = shell_joined(changed),
      .word = knobs::ChangedWord{option.at, signals.command[option.at], changed[option.at]}};
}

}  // namespace

std::optional<knobs::InProgram> with_rarer_own_interval(const Signals& signals, Sources& sources, double rarer_by) {
  if (auto option = by_option(signals, rarer_by)) {
    return option;
  }
  const std::vector<Interval> found = intervals(signals, sources);
  if (found.size() != 1) {
    return std::nullopt;
  }
  const Interval& interval = found.front();
  if (is_given(interval.scalar, signals.command)) {  // as an option of another spelling; the default is not in use
    return std::nullopt;
  }
  const std::string to = fmt::format("{:.0f}", std::ceil(interval.value * rarer_by));
  try {
    knobs::ConfigFile edited = knobs::ConfigFile::from_text(interval.text, interval.file);
    edited.set(interval.scalar.path, to);
    knobs::InProgram change;
    put_lines(interval.file, interval.text, edited.text(), change);
    put_setting_words(edited, interval.scalar.path, to, change);
    return change;
  } catch (const Error& failure) {  // a key that the file repeats
    spdlog::debug("{}: the validation interval cannot be changed: {}", interval.file, failure.what());
    return std::nullopt;
  }
}

bool may_decide_by_validation(const Signals& signals, const Sources& sources) {
  const auto whole = text_of_program(signals.command, sources.folder());
  std::string text = whole ? without_comments(*whole) : "";
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  // Programs that keep the best weights themselves call it best_loss, is_best, min_val_loss.
  constexpr std::array<std::string_view, 11> kDecides = {
      "earlystop", "early_stop", "early-stop",  "patience", "reducelronplateau", "modelcheckpoint(", "best",
      "min_val",   "lowest",     "param_group", "break"};
  return !whole || contains_any(text, kDecides);
}

}  // namespace unidle::diagnose
