#include "unidle/knobs/recognize.h"

#include <algorithm>
#include <set>

#include "unidle/knobs/detail/encoding.h"
#include "unidle/knobs/detail/links.h"
#include "unidle/knobs/detail/literal.h"
#include "unidle/knobs/detail/match.h"
#include "unidle/knobs/detail/words.h"
#include "unidle/knobs/framework.h"

namespace unidle::knobs {

namespace {

bool is_null(const Scalar& scalar) {
  return !scalar.quoted && (scalar.value.empty() || scalar.value == "~" || scalar.value == "null" ||
                            scalar.value == "Null" || scalar.value == "NULL" || scalar.value == "None");
}

std::string keys_above(const std::string& path) {
  const std::size_t cut = path.find_last_of('.');
  return cut == std::string::npos ? std::string() : path.substr(0, cut);
}

/// An expression like 5 * 8, which the program computes.
bool is_arithmetic(const Scalar& scalar) {
  return !scalar.editable && !scalar.value.empty() &&
         scalar.value.find_first_not_of("0123456789.e*/+-() ") == std::string::npos;
}

bool is_element(const std::string& path) { return path.ends_with(']'); }

class Recognizer {
 public:
  explicit Recognizer(const ConfigFile& file) : file_(file) {
    result_.file = file.name();
    result_.framework = framework_of(file);
  }

  Recognition run() {
    for (const Scalar& scalar : file_.scalars()) {
      if (!scalar.inherited && !is_null(scalar) && !extend_option_list(scalar) && !by_name(scalar)) {
        others_.push_back(&scalar);
      }
    }
    drop_weak();
    follow_references();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Found& a, const Found& b) { return a.setting.line < b.setting.line; });
    for (Found& found : found_) {
      result_.knobs.push_back(std::move(found.setting));
    }
    for (const Scalar* scalar : others_) {
      result_.others.push_back({scalar->path, scalar->value, scalar->line});
    }
    return std::move(result_);
  }

 private:
  struct Found {
    Recognized setting;
    const Scalar* scalar;
    bool weak;
  };

  std::string source_of(const Scalar& scalar) const {
    return file_.text().substr(scalar.begin, scalar.end - scalar.begin);
  }

  bool by_name(const Scalar& scalar) {
    const auto match = detail::match_path(scalar.path, result_.framework, scalar.value);
    if (!match) {
      return false;
    }
    const bool weak = match->spelling->weak && words_at(result_.framework, match->knob->name, scalar.path) == nullptr;
    return add(scalar, *match->knob, match->spelling->meaning, match->phase, weak);
  }

  bool add(const Scalar& scalar, const Knob& knob, Meaning meaning, Phase phase, bool weak) {
    const bool computed = is_arithmetic(scalar) && meaning == Meaning::kValue;
    const Scalar* literal = computed ? nullptr : detail::literal_of(file_, scalar);
    detail::Decoded decoded{detail::Reading::kUnknown, {}, meaning};
    if (literal == nullptr && meaning == Meaning::kOptimizerName) {
      return false;
    }
    if (literal != nullptr) {
      decoded = detail::decode(knob, detail::meaning_beside(knob, meaning, *literal),
                               detail::value_of(file_.format(), *literal));
    }
    if (decoded.reading == detail::Reading::kNo) {
      return false;
    }
    Recognized setting;
    setting.knob = knob.name;
    setting.meaning = decoded.meaning;
    setting.phase = phase;
    setting.value = scalar.value;
    setting.source = source_of(scalar);
    setting.means = decoded.value;
    setting.path = scalar.path;
    setting.line = scalar.line;
    setting.framework = result_.framework;
    setting.literal = literal == nullptr ? "" : literal->path;
    if (decoded.meaning == Meaning::kOption && is_element(scalar.path)) {
      begin_option_list(scalar, setting);
    }
    found_.push_back({std::move(setting), &scalar, weak});
    return true;
  }

  /// A list of options is a single setting: compile.components = ["model", "loss"].
  void begin_option_list(const Scalar& scalar, Recognized& setting) const {
    setting.path = scalar.path.substr(0, scalar.path.rfind('['));
    setting.literal.clear();
    const std::size_t open = file_.text().find_last_not_of(" \t\r\n", scalar.begin == 0 ? 0 : scalar.begin - 1);
    if (open == std::string::npos || file_.text()[open] != '[') {
      return;
    }
    std::size_t last = scalar.end;
    const std::string element = setting.path + "[";
    for (const Scalar* other = &scalar; other != file_.scalars().data() + file_.scalars().size(); ++other) {
      if (!other->path.starts_with(element)) {
        break;
      }
      last = std::max(last, other->end);
    }
    const std::size_t close = file_.text().find(']', last);
    if (close != std::string::npos) {
      setting.source = setting.value = file_.text().substr(open, close + 1 - open);
    }
  }

  bool extend_option_list(const Scalar& scalar) const {
    return is_element(scalar.path) && !found_.empty() && found_.back().setting.meaning == Meaning::kOption &&
           found_.back().setting.path == scalar.path.substr(0, scalar.path.rfind('['));
  }

  /// Drops general words that have no recognised knob beside them.
  void drop_weak() {
    std::set<std::string> parents;
    std::set<std::string> knobs;
    for (const Found& found : found_) {
      if (!found.weak) {
        parents.insert(keys_above(found.setting.path));
        knobs.insert(found.setting.knob);
      }
    }
    std::erase_if(found_, [&](const Found& found) {
      const bool drop = found.weak && !parents.contains(keys_above(found.setting.path));
      if (drop) {
        others_.push_back(found.scalar);
      }
      return drop;
    });
  }

  /// A reference to a knob's literal is that knob too, if its path names the same topic and not a bound.
  void follow_references() {
    static const detail::Words kBounds = detail::split_words("end min final eta floor stop minimum");
    std::map<std::string, const Found*> by_path;
    for (const Found& found : found_) {
      by_path.try_emplace(found.setting.path, &found);
    }
    std::vector<Found> more;
    std::erase_if(others_, [&](const Scalar* scalar) {
      const Scalar* literal = detail::is_computed(scalar->value) ? detail::literal_of(file_, *scalar) : nullptr;
      const auto known = literal == nullptr ? by_path.end() : by_path.find(literal->path);
      if (known == by_path.end()) {
        return false;
      }
      const Found* owner = known->second;
      detail::Words words;
      for (const std::string& key : detail::keys_of(scalar->path)) {
        const detail::Words part = detail::words_of(key);
        words.insert(words.end(), part.begin(), part.end());
      }
      const Knob* knob = find_knob(owner->setting.knob);
      if (!detail::any_in(words, detail::split_words(knob->names.topic)) || detail::any_in(words, kBounds)) {
        return false;
      }
      Found found = *owner;
      found.setting.value = scalar->value;
      found.setting.source = source_of(*scalar);
      found.setting.path = scalar->path;
      found.setting.line = scalar->line;
      found.setting.literal = literal->path;
      more.push_back(std::move(found));
      return true;
    });
    found_.insert(found_.end(), more.begin(), more.end());
  }

  const ConfigFile& file_;
  Recognition result_;
  std::vector<Found> found_;
  std::vector<const Scalar*> others_;
};

/// The settings of one knob that concern training.
std::vector<const Recognized*> training_settings(const Recognition& recognition, const std::string& knob) {
  std::vector<const Recognized*> settings;
  for (const Recognized& setting : recognition.knobs) {
    const bool other = setting.meaning == Meaning::kGlobalBatch || setting.meaning == Meaning::kOption;
    if (setting.knob == knob && setting.phase == Phase::kTraining && !other) {
      settings.push_back(&setting);
    }
  }
  return settings;
}

/// A switch, a format, one flag for each format, or several of these set the precision.
std::optional<Configured> configured_precision(const std::vector<const Recognized*>& settings) {
  const Recognized* format = nullptr;
  const Recognized* off = nullptr;
  bool on = false;
  bool flagged = false;
  for (const Recognized* setting : settings) {
    const bool flag = setting->meaning == Meaning::kMeansFp16 || setting->meaning == Meaning::kMeansBf16;
    if (!setting->means && setting->meaning != Meaning::kSwitch) {
      return std::nullopt;  // "auto"
    }
    if (setting->means == "off" && (flag || setting->meaning == Meaning::kSwitch)) {
      off = setting;
    } else if (setting->meaning == Meaning::kSwitch) {
      on = true;
    } else if (format != nullptr && format->means != setting->means) {
      return std::nullopt;
    } else {
      format = setting;
      flagged = flagged || flag;
    }
  }
  const bool off_wins = off != nullptr && !on && (format == nullptr || off->meaning == Meaning::kSwitch);
  const Recognized* say = off_wins ? off : format;
  const bool contradicted = off != nullptr && off->meaning == Meaning::kSwitch && (on || flagged);
  if (say == nullptr || contradicted) {
    return std::nullopt;
  }
  return Configured{*say->means, say->path, say->line};
}

}  // namespace

Recognition recognize(const ConfigFile& file) { return Recognizer(file).run(); }

Recognition recognize(const std::filesystem::path& path) { return recognize(ConfigFile::load(path)); }

std::map<std::string, Configured> configured(const Recognition& recognition) {
  std::map<std::string, Configured> result;
  for (const Knob* knob : all_catalogue()) {
    const auto settings = training_settings(recognition, knob->name);
    if (settings.empty()) {
      continue;
    }
    if (knob->name == "precision.amp") {
      if (auto value = configured_precision(settings)) {
        result.emplace(knob->name, *value);
      }
      continue;
    }
    const bool agreed = std::all_of(settings.begin(), settings.end(), [&](const Recognized* setting) {
      return setting->means && setting->means == settings.front()->means;
    });
    if (agreed) {
      result.emplace(knob->name, Configured{*settings.front()->means, settings.front()->path, settings.front()->line});
    }
  }
  return result;
}

std::string_view to_string(Phase phase) { return phase == Phase::kTraining ? "training" : "validation"; }

}  // namespace unidle::knobs
