#include "unidle/knobs/apply.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "unidle/base/error.h"
#include "unidle/knobs/detail/encoding.h"
#include "unidle/knobs/detail/links.h"
#include "unidle/knobs/detail/match.h"

namespace unidle::knobs {

namespace {

/// A key that a framework reads although the file may not have it. Under `beside`: next to a key of that name, so that
/// it lands in the right group; otherwise a path from the top.
struct Addition {
  std::string_view framework;
  std::string_view knob;
  std::string_view key;
  std::string_view beside;
  Meaning meaning = Meaning::kValue;
};
/// Sources: TrainingArguments of transformers; Trainer of lightning; DataLoader keywords that mmengine's dataloader
/// dictionaries pass on; the question list of `accelerate config`; CompileConfig of torchtitan.
constexpr std::array<Addition, 17> kAdditions = {{
    {"huggingface", "loader.workers", "dataloader_num_workers", "per_device_train_batch_size"},
    {"huggingface", "loader.prefetch_factor", "dataloader_prefetch_factor", "dataloader_num_workers"},
    {"huggingface", "loader.persistent_workers", "dataloader_persistent_workers", "dataloader_num_workers"},
    {"huggingface", "precision.tf32", "tf32", "per_device_train_batch_size"},
    {"huggingface", "precision.amp", "bf16", "per_device_train_batch_size", Meaning::kMeansBf16},
    {"huggingface", "compile.mode", "torch_compile", "per_device_train_batch_size", Meaning::kSwitch},
    {"axolotl", "loader.workers", "dataloader_num_workers", "micro_batch_size"},
    {"axolotl", "loader.prefetch_factor", "dataloader_prefetch_factor", "dataloader_num_workers"},
    {"axolotl", "loader.pin_memory", "dataloader_pin_memory", "micro_batch_size"},
    {"axolotl", "precision.tf32", "tf32", "micro_batch_size"},
    {"axolotl", "precision.amp", "bf16", "micro_batch_size", Meaning::kMeansBf16},
    {"axolotl", "compile.mode", "torch_compile", "micro_batch_size", Meaning::kSwitch},
    {"mmengine", "loader.persistent_workers", "persistent_workers", "num_workers"},
    {"mmengine", "loader.pin_memory", "pin_memory", "num_workers"},
    {"mmengine", "loader.prefetch_factor", "prefetch_factor", "num_workers"},
    {"lightning", "cudnn.benchmark", "benchmark", "max_epochs"},
    {"torchtitan", "compile.mode", "compile.enable", "", Meaning::kSwitch},
}};

std::string with_last_key(const std::string& path, std::string_view key) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string(key) : path.substr(0, dot + 1) + std::string(key);
}

std::string_view last_key(std::string_view path) { return path.substr(path.rfind('.') + 1); }

class Setter {
 public:
  Setter(ConfigFile& file, const Knob& knob, std::string_view value)
      : file_(file), recognition_(recognize(file)), readers_(file), knob_(knob), value_(value) {}

  std::vector<Edit> run() {
    for (const Recognized& setting : recognition_.knobs) {
      const bool other = setting.meaning == Meaning::kGlobalBatch || setting.meaning == Meaning::kOption;
      if (setting.knob == knob_.name && setting.phase == Phase::kTraining && !other) {
        settings_.push_back(&setting);
        ours_.insert(setting.path);
      }
    }
    if (settings_.empty()) {
      add_missing();
      return std::move(edits_);
    }
    refuse_ambiguous();
    std::vector<std::string> places;  // before anything is changed
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

  /// Stages with batch sizes of their own would all get the same one.
  void refuse_ambiguous() const {
    const bool per_stage =
        knob_.name == "batch.size" || knob_.name == "batch.accumulation" || knob_.knob_class == KnobClass::kSemantic;
    for (const Recognized* setting : settings_) {
      if (setting->literal.empty()) {
        refuse(setting, "is computed by the program: " + setting->value, "change what it is computed from");
      }
      if (per_stage && setting->canonical != settings_.front()->canonical) {
        refuse(setting, fmt::format("differs from {} in line {}", settings_.front()->path, settings_.front()->line),
               "change one of them by hand");
      }
    }
  }

  /// A setting of the knob in training: it may change along with another one.
  bool is_one_of_ours(const std::string& path) const {
    if (ours_.contains(path)) {
      return true;
    }
    const auto match = detail::match_path(path, recognition_.framework);
    return match && match->knob == &knob_ && match->phase == Phase::kTraining;
  }

  /// The first key that is none of ours and whose value would change with the literal.
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

  /// The key to edit: the literal where only settings of this knob have it, otherwise the setting's own.
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

  /// `text` where the program takes it, otherwise a choice that means the same.
  std::optional<std::string> choice_for(const Scalar& literal, Meaning meaning, const std::string& text) const {
    const auto& choices = literal.choices;
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) {
      return text;
    }
    const auto same = std::find_if(choices.begin(), choices.end(), [&](const std::string& choice) {
      const detail::Decoded decoded = detail::decode(knob_, meaning, choice);
      return decoded.reading == detail::Reading::kKnown && decoded.canonical == value_;
    });
    return same == choices.end() ? std::nullopt : std::optional(*same);
  }

  /// All of them at once: each edit reads the file again.
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
    auto text = detail::encode(knob_, setting.meaning, value_, old);
    if (text && !literal->choices.empty()) {
      text = choice_for(*literal, setting.meaning, *text);
    }
    if (!text) {
      refuse(&setting, literal->choices.empty() ? fmt::format("has no word for {}", value_)
                                                : fmt::format("takes only {}, and none of them is {}",
                                                              fmt::join(literal->choices, ", "), value_));
    }
    if (*text != old) {
      if (file_.find(place)->is_alias()) {
        make_changes();
        file_.set_alone(place, *text);
      } else {
        pending_[literal->begin] = *text;
        changes_.push_back({place, *text});
      }
      edits_.push_back({knob_.name, place, old, *text});
    }
  }

  /// fp16: true -> fp16: false, bf16: true. Only where a flag for the other format exists by design.
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
    const std::string& framework = recognition_.framework;
    std::string path = (*flag)->path;
    const std::string from = wants_bf16 ? "fp16" : "bf16";
    const std::string to = wants_bf16 ? "bf16" : "fp16";
    if ((framework != "huggingface" && framework != "axolotl" && framework != "deepspeed") ||
        path.find(from) == std::string::npos) {
      refuse(*flag, fmt::format("has no key for {}", value_));
    }
    for (std::size_t at = path.find(from); at != std::string::npos; at = path.find(from, at + to.size())) {
      path.replace(at, from.size(), to);
    }
    add(path, detail::boolean_like(true, file_boolean()));
  }

  void add_missing() {
    if (file_.find("workload") != nullptr && recognition_.framework == "unidle") {
      add(knob_.name, value_);
      return;
    }
    for (const Addition& addition : kAdditions) {
      if (addition.framework != recognition_.framework || addition.knob != knob_.name) {
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
      return std::string(addition.key);
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

  /// How this file writes booleans.
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
  detail::Readers readers_;  // of the file as it was
  std::map<std::string, std::optional<detail::KeyReader>> other_readers_;
  std::set<std::string> ours_;  // paths of settings_
  const Knob& knob_;
  std::string value_;
  std::vector<const Recognized*> settings_;
  std::set<std::string> done_;
  std::vector<NewValue> changes_;
  std::map<std::size_t, std::string> pending_;  // what they make of the literals that begin there
  std::vector<Edit> edits_;
};

}  // namespace

std::vector<Edit> set_knob(ConfigFile& file, std::string_view name, std::string_view value) {
  const Knob* knob = find_knob(name);
  const auto canonical = knob == nullptr ? std::nullopt : canonical_value(*knob, value);
  if (!canonical) {
    throw Error(ErrorCode::kUsage, fmt::format("{}={}", name, value),
                knob == nullptr ? "is no knob" : "is no value of this knob");
  }
  ConfigFile work = file;  // all edits or none
  std::vector<Edit> edits = Setter(work, *knob, *canonical).run();
  file = std::move(work);
  return edits;
}

bool can_set(const ConfigFile& file, std::string_view knob, std::string_view value) {
  ConfigFile work = file;
  try {
    set_knob(work, knob, value);
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace unidle::knobs
