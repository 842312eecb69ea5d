#include "unidle/knobs/command_line.h"

#include <algorithm>

#include "unidle/base/characters.h"
#include "unidle/knobs/detail/encoding.h"
#include "unidle/knobs/detail/match.h"

namespace unidle::knobs {

namespace {

bool is_flag(std::string_view word) { return word.size() > 2 && word.starts_with("--") && word[2] != '-'; }

/// --mixed_precision takes no, fp16 or bf16 in all programs that have this flag, as in accelerate.
constexpr std::string_view kDialect = "accelerate";

/// Whether NAME in NAME=VALUE is a variable: capitals, digits, underscores.
bool is_variable(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_upper(c) || is_digit(c) || c == '_'; });
}

/// Whether this is a Hydra override: a.b=c, with + or ++ for new keys; ~ deletes.
bool is_override(std::string_view name) {
  return !name.empty() && name.find_first_of("/ \t-'\"~") == std::string_view::npos;
}

const Knob* knob_of_variable(std::string_view name) {
  for (const Knob* knob : all_catalogue()) {
    const std::string& names = knob->names.environment;
    const std::size_t at = names.find(name);
    const bool whole = at != std::string::npos && (at == 0 || names[at - 1] == ' ') &&
                       (at + name.size() == names.size() || names[at + name.size()] == ' ');
    if (whole) {
      return knob;
    }
  }
  return nullptr;
}

class CommandReader {
 public:
  explicit CommandReader(const std::vector<std::string>& argv) : argv_(argv) {}

  std::vector<CommandSetting> run() {
    bool before_program = true;
    for (std::size_t i = 0; i < argv_.size(); ++i) {
      const std::string& word = argv_[i];
      if (word == "--" && i + 1 < argv_.size() && argv_[i + 1].starts_with("-")) {
        break;  // the rest are not options; a launcher's "--" precedes its program
      }
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      if (before_program && equals != std::string::npos && is_variable(name)) {
        variable(i, name, word.substr(equals + 1));
        continue;
      }
      before_program = before_program && i == 0 && word.ends_with("env");
      if (is_flag(word)) {
        flag(i, name, equals == std::string::npos ? std::nullopt : std::optional(word.substr(equals + 1)));
      } else if (equals != std::string::npos && is_override(name)) {
        override_(i, name, word.substr(equals + 1));
      }
    }
    return std::move(found_);
  }

 private:
  void add(const detail::Match& match, std::string spelling, std::string value, std::size_t index) {
    const detail::Decoded decoded = detail::decode(*match.knob, match.spelling->meaning, value);
    if (decoded.reading == detail::Reading::kNo || match.spelling->weak) {
      return;
    }
    found_.push_back(
        {match.knob->name, decoded.meaning, match.phase, std::move(spelling), std::move(value), decoded.value, index});
  }

  void variable(std::size_t index, const std::string& name, const std::string& value) {
    static const Spelling kValue{"", Meaning::kValue, false, ""};
    if (const Knob* knob = knob_of_variable(name)) {
      add({knob, &kValue, Phase::kTraining}, name, value, index);
    }
  }

  /// --data.batch_size is a path; --no-pin-memory and --batch-size consist of words.
  static std::optional<detail::Match> match(std::string_view name) {
    return name.find('.') == std::string_view::npos ? detail::match_words(detail::words_of(name), kDialect)
                                                    : detail::match_path(name, kDialect);
  }

  void flag(std::size_t index, const std::string& name, const std::optional<std::string>& value) {
    const auto found = match(name.substr(2));
    if (!found) {
      return;
    }
    if (value) {
      add(*found, name, *value, index);
      return;
    }
    const bool has_value = index + 1 < argv_.size() && !argv_[index + 1].starts_with("--");
    const Meaning meaning = found->spelling->meaning;
    const bool takes_value =
        has_value && detail::decode(*found->knob, meaning, argv_[index + 1]).reading != detail::Reading::kNo;
    if (takes_value) {
      add(*found, name, argv_[index + 1], index + 1);
      return;
    }
    detail::Decoded decoded = detail::decode(*found->knob, meaning, "true");
    if (decoded.reading != detail::Reading::kNo) {
      found_.push_back({found->knob->name, meaning, found->phase, name, "", decoded.value, index});
    }
  }

  void override_(std::size_t index, const std::string& name, const std::string& value) {
    const std::string path = name.substr(std::min(name.find_first_not_of('+'), name.size()));
    if (const auto found = detail::match_path(path, "hydra")) {
      add(*found, name, value, index);
    }
  }

  const std::vector<std::string>& argv_;
  std::vector<CommandSetting> found_;
};

}  // namespace

std::vector<CommandSetting> recognize_command(const std::vector<std::string>& argv) {
  return CommandReader(argv).run();
}

std::optional<std::vector<std::string>> apply_to_command(const std::vector<std::string>& argv, std::string_view knob,
                                                         const Value& value) {
  const Knob* known = find_knob(knob);
  if (known == nullptr || !takes(*known, value)) {
    return std::nullopt;
  }
  std::vector<std::string> result = argv;
  std::vector<std::size_t> removed;
  bool said = false;
  for (const CommandSetting& setting : recognize_command(argv)) {
    const bool other = setting.meaning == Meaning::kGlobalBatch || setting.meaning == Meaning::kOption;
    if (setting.knob != knob || setting.phase != Phase::kTraining || other) {
      continue;
    }
    const auto text = detail::encode(*known, setting.meaning, value, setting.value);
    if (!text) {
      return std::nullopt;
    }
    std::string& word = result[setting.index];
    if (setting.value.empty()) {
      if (!detail::boolean_of(*text).value_or(true)) {
        removed.push_back(setting.index);
      }
    } else if (word == setting.value) {
      word = *text;
    } else {
      word = setting.spelling + "=" + *text;
    }
    said = true;
  }
  for (auto index = removed.rbegin(); index != removed.rend(); ++index) {
    result.erase(result.begin() + static_cast<std::ptrdiff_t>(*index));
  }
  return said ? std::optional(result) : std::nullopt;
}

}  // namespace unidle::knobs
