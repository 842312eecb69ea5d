#include "unidle/knobs/detail/encoding.h"

#include <algorithm>
#include <array>
#include <utility>

#include "unidle/base/characters.h"

namespace unidle::knobs::detail {

namespace {

/// Families of names for number formats; a value is replaced by another of its family.
struct Family {
  std::string_view off;
  std::string_view fp16;
  std::string_view bf16;
};
constexpr std::array<Family, 10> kFamilies = {{
    {"float32", "float16", "bfloat16"},
    {"fp32", "fp16", "bf16"},
    {"32-true", "16-mixed", "bf16-mixed"},
    {"32", "16", "bf16"},
    {"fp32_mixed", "fp16_mixed", "bf16_mixed"},
    {"amp_fp32", "amp_fp16", "amp_bf16"},
    {"torch.float32", "torch.float16", "torch.bfloat16"},
    {"no", "fp16", "bf16"},
    {"off", "half", "bfloat16"},
    {"float", "16-true", "bf16-true"},
}};

bool is_mode_choice(std::string_view word) {
  static constexpr std::array<std::string_view, 6> kModes = {
      "default", "reduce-overhead", "max-autotune", "graph", "max-autotune-no-cudagraphs", "inductor"};
  return std::find(kModes.begin(), kModes.end(), word) != kModes.end();
}

/// mmengine selects mixed precision by the class of its optimiser wrapper.
constexpr std::string_view kWrapper = "OptimWrapper";
constexpr std::string_view kAmpWrapper = "AmpOptimWrapper";

Decoded known(Value value, Meaning meaning) { return {Reading::kKnown, std::move(value), meaning}; }

Decoded decode_switch(const Knob& knob, std::string_view value) {
  const std::optional<bool> on = boolean_of(value);
  if (knob.name == "precision.amp") {
    if (value == kWrapper || value == kAmpWrapper) {
      return value == kWrapper ? known("off", Meaning::kSwitch) : Decoded{Reading::kUnknown, {}, Meaning::kSwitch};
    }
    if (on) {
      // The format of "on" depends on the program and its other keys.
      return *on ? Decoded{Reading::kUnknown, {}, Meaning::kSwitch} : known("off", Meaning::kSwitch);
    }
    const auto format = format_of(value);
    return format ? known(*format, Meaning::kFormat) : Decoded{};
  }
  if (on) {
    return known(*on ? "default" : "off", Meaning::kSwitch);
  }
  return is_mode_choice(lower(value)) ? known(lower(value) == "inductor" ? "default" : lower(value), Meaning::kSwitch)
                                      : Decoded{};
}

Decoded decode_flag(std::string_view value, std::string_view format) {
  const std::optional<bool> on = boolean_of(value);
  const Meaning meaning = format == "fp16" ? Meaning::kMeansFp16 : Meaning::kMeansBf16;
  return on ? known(*on ? std::string(format) : "off", meaning) : Decoded{};
}

Decoded decode_matmul(std::string_view value) {
  const std::string word = lower(value);
  if (word == "high" || word == "medium" || word == "tf32") {
    return known(true, Meaning::kMatmulPrecision);
  }
  return word == "highest" || word == "ieee" ? known(false, Meaning::kMatmulPrecision) : Decoded{};
}

Decoded decode_memory_format(std::string_view value) {
  const std::string word = lower(value);
  if (word == "nhwc" || word.ends_with("channels_last")) {
    return known(true, Meaning::kMemoryFormat);
  }
  return word == "nchw" || word.ends_with("contiguous_format") ? known(false, Meaning::kMemoryFormat) : Decoded{};
}

}  // namespace

Meaning meaning_beside(const Knob& knob, Meaning meaning, const Scalar& literal) {
  const bool among_formats = std::any_of(literal.choices.begin(), literal.choices.end(), [](const std::string& choice) {
    return !boolean_of(choice) && format_of(choice).has_value();
  });
  const bool text = (literal.quoted && lower(literal.value) == "no") || among_formats;
  return knob.name == "precision.amp" && meaning == Meaning::kSwitch && text && format_of(literal.value)
             ? Meaning::kFormat
             : meaning;
}

std::optional<bool> boolean_of(std::string_view value) {
  const std::string word = lower(value);
  if (word == "true" || word == "yes" || word == "on") {
    return true;
  }
  return word == "false" || word == "no" || word == "off" ? std::optional(false) : std::nullopt;
}

std::string boolean_like(bool value, std::string_view old) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kPairs = {{{"true", "false"},
                                                                                           {"True", "False"},
                                                                                           {"TRUE", "FALSE"},
                                                                                           {"yes", "no"},
                                                                                           {"Yes", "No"},
                                                                                           {"on", "off"},
                                                                                           {"On", "Off"},
                                                                                           {"1", "0"}}};
  for (const auto& [yes, no] : kPairs) {
    if (old == yes || old == no) {
      return std::string(value ? yes : no);
    }
  }
  return value ? "true" : "false";
}

std::optional<std::string> format_of(std::string_view value) {
  const std::string word = lower(value);
  for (const Family& family : kFamilies) {
    if (word == family.bf16) {
      return "bf16";
    }
    if (word == family.fp16) {
      return "fp16";
    }
    if (word == family.off) {
      return "off";
    }
  }
  return std::nullopt;
}

Decoded decode(const Knob& knob, Meaning meaning, std::string_view value) {
  const std::string word = lower(value);
  const bool about_format =
      meaning == Meaning::kFormat || (meaning == Meaning::kSwitch && knob.name == "precision.amp");
  if ((word == "auto" && meaning != Meaning::kOptimizerName) ||
      (about_format && (word.find("fp8") != std::string::npos || word == "transformer-engine"))) {
    return {Reading::kUnknown, {}, word == "auto" ? meaning : Meaning::kFormat};
  }
  switch (meaning) {
    case Meaning::kSwitch: return decode_switch(knob, value);
    case Meaning::kMeansFp16: return decode_flag(value, "fp16");
    case Meaning::kMeansBf16: return decode_flag(value, "bf16");
    case Meaning::kMatmulPrecision: return decode_matmul(value);
    case Meaning::kMemoryFormat: return decode_memory_format(value);
    case Meaning::kOption: return {Reading::kUnknown, {}, meaning};
    case Meaning::kOptimizerName: return word.find("fused") != std::string::npos ? known(true, meaning) : Decoded{};
    case Meaning::kFormat: {
      const auto format = format_of(value);
      return format ? known(*format, meaning) : Decoded{};
    }
    case Meaning::kInverted: {
      const auto on = boolean_of(value);
      return on ? known(!*on, meaning) : Decoded{};
    }
    case Meaning::kGlobalBatch:
    case Meaning::kValue: break;
  }
  const bool number_as_switch = knob.type == ValueType::kBool && !boolean_of(value);
  const bool switch_as_number = knob.type != ValueType::kBool && boolean_of(value) && knob.type != ValueType::kChoice;
  const auto parsed = number_as_switch || switch_as_number ? std::nullopt : parse_value(knob, value);
  return parsed ? known(*parsed, meaning) : Decoded{};
}

std::optional<std::string> encode(const Knob& knob, Meaning meaning, const Value& value, std::string_view old) {
  switch (meaning) {
    case Meaning::kSwitch:
      if (knob.name == "compile.mode" && is_mode_choice(lower(old)) && value != "off") {
        return value.to_text();
      }
      if (old == kWrapper || old == kAmpWrapper) {
        return std::string(value == "off" ? kWrapper : kAmpWrapper);
      }
      return boolean_like(value != "off", old);
    case Meaning::kMeansFp16: return boolean_like(value == "fp16", old);
    case Meaning::kMeansBf16: return boolean_like(value == "bf16", old);
    case Meaning::kInverted: return boolean_like(value != true, old);
    case Meaning::kMatmulPrecision: return value == true ? "high" : "highest";
    case Meaning::kMemoryFormat: {
      const bool short_form = lower(old) == "nhwc" || lower(old) == "nchw";
      return value == true ? (short_form ? "nhwc" : "channels_last") : (short_form ? "nchw" : "contiguous_format");
    }
    case Meaning::kFormat:
      for (const Family& family : kFamilies) {
        if (lower(old) == family.off || lower(old) == family.fp16 || lower(old) == family.bf16) {
          return std::string(value == "bf16" ? family.bf16 : value == "fp16" ? family.fp16 : family.off);
        }
      }
      return std::nullopt;
    case Meaning::kOption:
    case Meaning::kOptimizerName: return std::nullopt;
    case Meaning::kGlobalBatch:
    case Meaning::kValue: break;
  }
  if (knob.type == ValueType::kBool) {
    return boolean_like(value == true, old);
  }
  return value.to_text();
}

}  // namespace unidle::knobs::detail
