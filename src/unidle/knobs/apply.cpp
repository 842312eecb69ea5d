#include "unidle/knobs/apply.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/knobs/comments.h"
#include "unidle/knobs/detail/encoding.h"
#include "unidle/knobs/detail/links.h"
#include "unidle/knobs/detail/match.h"
#include "unidle/knobs/detail/words.h"
#include "unidle/knobs/framework.h"

namespace unidle::knobs {

namespace {

std::string with_last_key(const std::string& path, std::string_view key) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string(key) : path.substr(0, dot + 1) + std::string(key);
}

std::string_view last_key(std::string_view path) { return path.substr(path.rfind('.') + 1); }

/// The words in a comment that name number formats.
std::vector<std::string> formats_in(const std::string& comment) {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  std::vector<std::string> words;
  for (std::size_t at = comment.find_first_of(kLetters); at != std::string::npos;) {
    const std::size_t end = std::min(comment.find_first_not_of(kLetters, at), comment.size());
    std::string word = comment.substr(at, end - at);
    while (word.ends_with('.')) {
      word.pop_back();
    }
    if (detail::format_of(word)) {
      words.push_back(std::move(word));
    }
    at = comment.find_first_of(kLetters, end);
  }
  return words;
}

class Setter {
 public:
  Setter(ConfigFile& file, const Knob& knob, Value value)
      : file_(file),
        recognition_(recognize(file)),
        framework_(find_framework(recognition_.framework)),
        readers_(file),
        knob_(knob),
        value_(std::move(value)) {}

  std::vector<Edit> run() {
    for (const Recognized& setting : recognition_.knobs) {
      const bool other = setting.meaning == Meaning::kGlobalBatch || setting.meaning == Meaning::kOption;
      if (setting.knob == knob_.name && setting.phase == Phase::kTraining && !other && !is_of_weights(setting)) {
        settings_.push_back(&setting);
        ours_.insert(setting.path);
      }
    }
    refuse_without_agreement();
    if (settings_.empty()) {
      add_missing();
      return std::move(edits_);
    }
    refuse_ambiguous();
    std::vector<std::string> places;  // before any change
    for (const Recognized* setting : settings_) {
      places.push_back(place_of(*setting));
    }
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      change(*settings_[i], places[i]);
    }
    make_changes();
    if (knob_.name == "precision.amp") {
      add_other_flag();
    }
    return std::move(edits_);
  }

 private:
  [[noreturn]] void refuse(const Recognized* setting, const std::string& why, std::string hint = {}) const {
    const std::string place = setting == nullptr ? fmt::format("{}: {}", file_.name(), knob_.name)
                                                 : fmt::format("{}:{}: {}", file_.name(), setting->line, setting->path);
    throw Error(ErrorCode::kInput, place, why, std::move(hint));
  }

  /// Whether the setting is the format in which weights are loaded, which is not changed. Refuses a value that
  /// contradicts it: a gradient scaler does not accept 16-bit gradients, and fp16 cannot represent the range of bf16.
  bool is_of_weights(const Recognized& setting) const {
    if (framework_ == nullptr || knob_.name != "precision.amp" ||
        !detail::contains(detail::split_list(framework_->weight_formats), last_key(setting.path))) {
      return false;
    }
    if (value_ != "off" && setting.means && *setting.means != "off" && *setting.means != value_) {
      refuse(&setting, fmt::format("loads weights in {}, which cannot be trained in {}", setting.value, value_),
             "change both by hand");
    }
    return true;
  }

  bool has_value(std::string_view key) const {
    const auto& scalars = file_.scalars();
    return std::any_of(scalars.begin(), scalars.end(), [&](const Scalar& scalar) {
      static const std::set<std::string> kNone = {"", "~", "null", "None", "false", "False", "0", "0.0"};
      return last_key(scalar.path) == key && (scalar.quoted || !kNone.contains(scalar.value));
    });
  }

  void refuse_without_agreement() const {
    const Recognized* setting = settings_.empty() ? nullptr : settings_.front();
    if (framework_ != nullptr) {
      for (const Agreement& agreement : framework_->agreements) {
        if (agreement.knob == knob_.name && (agreement.when.empty() || has_value(agreement.when))) {
          refuse(setting, agreement.reason, "change both by hand");
        }
      }
    }
    if (knob_.name == "optimizer.fused" && value_ == true && setting != nullptr) {
      for (const char* other : {"foreach", "differentiable"}) {
        const Scalar* beside = file_.find(with_last_key(setting->path, other));
        if (beside != nullptr && detail::boolean_of(beside->value).value_or(false)) {
          refuse(setting, fmt::format("is refused by torch together with {}", beside->path), "turn that off first");
        }
      }
    }
  }

  /// Stages with different batch sizes would all get the same one.
  void refuse_ambiguous() const {
    const bool per_stage =
        knob_.name == "batch.size" || knob_.name == "batch.accumulation" || knob_.knob_class == KnobClass::kSemantic;
    for (const Recognized* setting : settings_) {
      if (setting->literal.empty()) {
        refuse(setting, "is computed by the program: " + setting->value, "change what it is computed from");
      }
      if (per_stage && setting->means != settings_.front()->means) {
        refuse(setting, fmt::format("differs from {} in line {}", settings_.front()->path, settings_.front()->line),
               "change one of them by hand");
      }
    }
  }

  /// Whether the path is a training setting of this knob, which may change along with another one.
  bool is_one_of_ours(const std::string& path) const {
    if (ours_.contains(path)) {
      return true;
    }
    const auto match = detail::match_path(path, recognition_.framework);
    return match && match->knob == &knob_ && match->phase == Phase::kTraining;
  }

  /// The first key of another setting whose value would change with the literal.
  std::optional<detail::KeyReader> other_reader(const Scalar& literal) {
    const auto [known, fresh] = other_readers_.try_emplace(literal.path);
    if (fresh) {
      for (const detail::KeyReader& reader : readers_.of(literal)) {
        if (!reader.whole || !is_one_of_ours(reader.path)) {
          known->second = reader;
          break;
        }
      }
    }
    return known->second;
  }

  /// The key to edit: the literal's if only settings of this knob read it, otherwise the setting's own.
  std::string place_of(const Recognized& setting) {
    const Scalar* literal = file_.find(setting.literal);
    const Scalar* own = file_.find(setting.path);
    const bool refers = own != nullptr && (own->is_alias() || setting.path != setting.literal);
    const auto other = other_reader(*literal);
    if (!other && (!refers || is_one_of_ours(setting.literal))) {
      return setting.literal;
    }
    const auto reads_own = refers ? (own->is_alias() ? std::nullopt : other_reader(*own)) : other;
    if (reads_own) {
      refuse(&setting, fmt::format("{} in line {} takes its value from it", reads_own->path, reads_own->line),
             "give each key a value of its own");
    }
    return setting.path;
  }

  /// All values that the program accepts there, if known: from its parser, its framework, or a comment that lists them
  /// ("fp32, fp16 or bf16").
  std::vector<std::string> choices_at(const Recognized& setting, const Scalar& literal, Meaning meaning) const {
    if (!literal.choices.empty() || meaning != Meaning::kFormat) {
      return literal.choices;
    }
    if (const auto* words = words_at(recognition_.framework, knob_.name, setting.path)) {
      return *words;
    }
    std::vector<std::string> listed = formats_in(comment_of(file_, literal));
    const bool has = std::any_of(listed.begin(), listed.end(),
                                 [&](const std::string& word) { return detail::format_of(word) == value_; });
    return has ? listed : std::vector<std::string>();
  }

  /// `text` if the program accepts it, otherwise a choice with the same meaning.
  std::optional<std::string> choice_for(const std::vector<std::string>& choices, Meaning meaning,
                                        const std::string& text) const {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) {
      return text;
    }
    const auto same = std::find_if(choices.begin(), choices.end(), [&](const std::string& choice) {
      const detail::Decoded decoded = detail::decode(knob_, meaning, choice);
      return decoded.value == value_;
    });
    return same == choices.end() ? std::nullopt : std::optional(*same);
  }

  /// Whether a word for a format is certain: all words are known, it is accelerate's, or it names a torch type for
  /// autocast.
  static bool is_sure(const Recognized& setting, const std::vector<std::string>& choices, const std::string& old) {
    static const detail::Words kAutocast = {"amp", "autocast"};
    const std::string word = lower(old);
    const bool type = word.ends_with("float32") || word.ends_with("float16");
    const bool own = word == "no" || word.ends_with("-true") || word.ends_with("-mixed");
    return setting.meaning != Meaning::kFormat || !choices.empty() || own ||
           (type && detail::any_in(detail::words_of(setting.path), kAutocast));
  }

  /// Applies all changes at once, because each edit parses the file again.
  void make_changes() {
    file_.change(changes_);
    changes_.clear();
    pending_.clear();
  }

  void change(const Recognized& setting, const std::string& place) {
    if (!done_.insert(place).second) {
      return;
    }
    const Scalar* literal = file_.find(setting.literal);
    const auto pending = pending_.find(literal->begin);
    const std::string old = pending == pending_.end() ? literal->value : pending->second;
    if (value_ == "fp16" && setting.means == "bf16" && lower(old).ends_with("-true")) {
      refuse(&setting, "keeps the weights in bf16; in fp16 they would be trained without loss scaling",
             "choose a mixed format by hand");
    }
    const std::vector<std::string> choices = choices_at(setting, *literal, setting.meaning);
    auto text = detail::encode(knob_, setting.meaning, value_, old);
    if (text && !choices.empty()) {
      text = choice_for(choices, setting.meaning, *text);
    }
    if (!text) {
      refuse(&setting, choices.empty()
                           ? fmt::format("has no word for {}", value_)
                           : fmt::format("takes only {}; none of them means {}", fmt::join(choices, ", "), value_));
    }
    if (*text != old) {
      if (file_.find(place)->is_alias()) {
        make_changes();
        file_.set_alone(place, *text);
      } else {
        pending_[literal->begin] = *text;
        changes_.push_back({place, *text});
      }
      edits_.push_back({knob_.name, place, old, *text, !is_sure(setting, choices, old)});
    }
  }

  /// fp16: true -> fp16: false, bf16: true. Only if the framework has a flag for the other format.
  void add_other_flag() {
    const auto has = [&](Meaning meaning) {
      return std::any_of(settings_.begin(), settings_.end(),
                         [&](const Recognized* setting) { return setting->meaning == meaning; });
    };
    const bool wants_bf16 = value_ == "bf16";
    const Meaning wanted = wants_bf16 ? Meaning::kMeansBf16 : Meaning::kMeansFp16;
    const Meaning present = wants_bf16 ? Meaning::kMeansFp16 : Meaning::kMeansBf16;
    if (value_ == "off" || has(wanted) || has(Meaning::kFormat) || !has(present)) {
      return;
    }
    const auto flag = std::find_if(settings_.begin(), settings_.end(),
                                   [&](const Recognized* setting) { return setting->meaning == present; });
    const std::string from = wants_bf16 ? "fp16" : "bf16";
    const std::string to = wants_bf16 ? "bf16" : "fp16";
    if (!reads_both_flags() || last_key((*flag)->path) != from) {  // use_bf16 belongs to another program
      refuse(*flag, fmt::format("has no key for {}", value_));
    }
    add(with_last_key((*flag)->path, to), detail::boolean_like(true, file_boolean()));
  }

  /// Whether the framework reads a flag for each format, even if the file lacks it.
  bool reads_both_flags() const {
    return framework_ != nullptr &&
           std::any_of(framework_->additions.begin(), framework_->additions.end(),
                       [](const Addition& addition) { return addition.meaning == Meaning::kMeansBf16; });
  }

  void add_missing() {
    if (file_.find("workload") != nullptr && recognition_.framework == "unidle") {
      add(knob_.name, value_.to_text());
      return;
    }
    static const std::vector<Addition> kNone;
    for (const Addition& addition : framework_ == nullptr ? kNone : framework_->additions) {
      if (addition.knob != knob_.name) {
        continue;
      }
      std::string old = file_boolean();
      const auto text = detail::encode(knob_, addition.meaning, value_, old);
      const std::string path = place_of_new(addition);
      if (text && !path.empty() && !(addition.meaning == Meaning::kMeansBf16 && value_ != "bf16")) {
        add(path, *text);
        return;
      }
    }
    refuse(nullptr, "the file has no key for it, and a new one might not be read",
           "add the key that your program reads");
  }

  std::string place_of_new(const Addition& addition) const {
    if (addition.beside.empty()) {
      return addition.key;
    }
    for (const Scalar& scalar : file_.scalars()) {
      if (last_key(scalar.path) == addition.beside && !scalar.inherited && is_for_training(scalar.path)) {
        return with_last_key(scalar.path, addition.key);
      }
    }
    return {};
  }

  bool is_for_training(const std::string& path) const {
    const auto found = std::find_if(recognition_.knobs.begin(), recognition_.knobs.end(),
                                    [&](const Recognized& setting) { return setting.path == path; });
    return found == recognition_.knobs.end() || found->phase == Phase::kTraining;
  }

  void add(const std::string& path, const std::string& text) {
    file_.set(path, text);
    edits_.push_back({knob_.name, path, "", text});
  }

  /// The spelling of booleans in this file.
  std::string file_boolean() const {
    for (const Scalar& scalar : file_.scalars()) {
      if (!scalar.quoted && detail::boolean_of(scalar.value)) {
        return scalar.value;
      }
    }
    return file_.format() == Format::kPython ? "True" : "true";
  }

  ConfigFile& file_;
  Recognition recognition_;
  const Framework* framework_;
  detail::Readers readers_;  // of the unchanged file
  std::map<std::string, std::optional<detail::KeyReader>> other_readers_;
  std::set<std::string> ours_;  // paths of settings_
  const Knob& knob_;
  Value value_;
  std::vector<const Recognized*> settings_;
  std::set<std::string> done_;
  std::vector<NewValue> changes_;
  std::map<std::size_t, std::string> pending_;  // new text of each literal, by its first byte
  std::vector<Edit> edits_;
};

}  // namespace

std::vector<Edit> set_knob(ConfigFile& file, std::string_view name, const Value& value) {
  const Knob* knob = find_knob(name);
  if (knob == nullptr || !takes(*knob, value)) {
    throw Error(ErrorCode::kUsage, fmt::format("{}={}", name, value),
                knob == nullptr ? "unknown knob" : "is not a value of this knob");
  }
  ConfigFile work = file;  // all edits or none
  std::vector<Edit> edits = Setter(work, *knob, value).run();
  file = std::move(work);
  return edits;
}

bool can_set(const ConfigFile& file, std::string_view knob, const Value& value) {
  ConfigFile work = file;
  try {
    set_knob(work, knob, value);
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace unidle::knobs
