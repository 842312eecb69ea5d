#include "unidle/knobs/detail/match.h"

#include <algorithm>
#include <array>

namespace unidle::knobs::detail {

namespace {

const Words& validation_words() {
  static const Words kWords = split_words("val valid validation eval evaluation evaluate evaluator test testing");
  return kWords;
}

/// A parsed spelling.
struct Pattern {
  const Knob* knob;
  const Spelling* spelling;
  std::vector<Words> required;  // one word of each set
  Words optional;
  Words frameworks;
};

Pattern compile(const Knob& knob, const Spelling& spelling) {
  Pattern pattern{&knob, &spelling, {}, {}, split_list(spelling.frameworks)};
  std::string_view rest = spelling.words;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    std::string token(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (token.starts_with('?')) {
      const Words words = split_words(token.substr(1));
      pattern.optional.insert(pattern.optional.end(), words.begin(), words.end());
    } else if (!token.empty()) {
      std::replace(token.begin(), token.end(), '|', ' ');
      pattern.required.push_back(split_words(token));
    }
  }
  return pattern;
}

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> kPatterns = [] {
    std::vector<Pattern> all;
    for (const Knob* knob : all_catalogue()) {
      for (const Spelling& spelling : knob->names.spellings) {
        all.push_back(compile(*knob, spelling));
      }
    }
    return all;
  }();
  return kPatterns;
}

/// Whether every required word is present and no unknown word, apart from words of validation.
bool fits(const Pattern& pattern, const Words& words) {
  const auto present = [&](const Words& choice) { return any_in(choice, words); };
  if (!std::all_of(pattern.required.begin(), pattern.required.end(), present)) {
    return false;
  }
  return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
    const auto has = [&](const Words& choice) { return contains(choice, word); };
    return contains(pattern.optional, word) || contains(validation_words(), word) ||
           std::any_of(pattern.required.begin(), pattern.required.end(), has);
  });
}

const Pattern* find_pattern(const Words& words, std::string_view framework) {
  for (const Pattern& pattern : patterns()) {
    const bool here = pattern.frameworks.empty() || contains(pattern.frameworks, framework);
    if (here && fits(pattern, words)) {
      return &pattern;
    }
  }
  return nullptr;
}

/// The innermost key that names a single phase decides.
Phase phase_of(const std::vector<std::string>& keys) {
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    const Words words = words_of(*key);
    const bool clipping = contains(words, "clip");  // in gradient_clip_val, val means value
    const bool validation = any_in(words, validation_words()) && !clipping;
    if (validation != contains(words, "train") && (validation || contains(words, "train"))) {
      return validation ? Phase::kValidation : Phase::kTraining;
    }
  }
  return Phase::kTraining;
}

/// Whether the nearest key that decides it makes the setting one of something else.
bool is_under(const std::vector<std::string>& above, const Names& names) {
  static const Words kSearches = split_words("search sweep sweeper sweeps hpo optuna");  // values to be tried
  const Words never = split_words(names.never_under);
  const Words but = split_words(names.but_under);
  bool decided = false;
  for (auto key = above.rbegin(); key != above.rend(); ++key) {
    const Words words = words_of(*key);
    decided = decided || any_in(words, but);
    if (any_in(words, kSearches) || (!decided && any_in(words, never))) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_container(std::string_view key) {
  static constexpr std::array<std::string_view, 13> kContainers = {
      "params", "kwargs",  "args", "init_args", "config",         "cfg", "settings", "option",
      "value",  "default", "<<",   "hparams",   "hyperparameters"};
  return std::find(kContainers.begin(), kContainers.end(), key) != kContainers.end();
}

std::optional<Match> match_words(const Words& words, std::string_view framework) {
  const Pattern* pattern = find_pattern(words, framework);
  if (pattern == nullptr) {
    return std::nullopt;
  }
  const Phase phase = any_in(words, validation_words()) ? Phase::kValidation : Phase::kTraining;
  return Match{pattern->knob, pattern->spelling, phase};
}

std::optional<Match> match_path(std::string_view path, std::string_view framework, std::string_view value) {
  static const Spelling kOwn{"", Meaning::kValue, false, ""};
  if (const Knob* own = find_knob(path)) {
    return Match{own, &kOwn, Phase::kTraining};
  }
  std::vector<std::string> keys = keys_of(path);
  const Phase phase = phase_of(keys);
  while (keys.size() > 1 && is_container(keys.back())) {
    keys.pop_back();
  }
  if (keys.empty()) {
    return std::nullopt;
  }
  Words words = words_of(keys.back());
  keys.pop_back();
  const Pattern* pattern = find_pattern(words, framework);
  while (pattern == nullptr && !keys.empty() && is_container(keys.back())) {
    keys.pop_back();
  }
  if ((pattern == nullptr || pattern->spelling->weak) && !keys.empty()) {
    Words both = words_of(keys.back());
    both.insert(both.end(), words.begin(), words.end());
    const Pattern* of_both = find_pattern(both, framework);
    if (pattern == nullptr || (of_both != nullptr && !of_both->spelling->weak)) {
      pattern = of_both;
      keys.pop_back();
    }
  }
  if (pattern == nullptr) {
    return std::nullopt;
  }
  const Names& names = pattern->knob->names;
  const bool own = std::find(names.own_values.begin(), names.own_values.end(), value) != names.own_values.end();
  if (!own && is_under(keys, names)) {
    return std::nullopt;
  }
  return Match{pattern->knob, pattern->spelling, phase};
}

}  // namespace unidle::knobs::detail
