// Knobs: the settings that unidle understands, one file each in catalogue/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::knobs {

enum class ValueType { kBool, kInt, kDouble, kChoice };
/// exact leaves the arithmetic alone; numeric changes rounding; semantic changes what is trained.
enum class KnobClass { kExact, kNumeric, kSemantic };

struct Knob {
  std::string name;
  ValueType type;
  KnobClass knob_class;
  std::vector<std::string> choices;  // of a kChoice
  std::string fallback;              // the value of a program that does not set it
  std::string explanation;           // one sentence for a person
};

const std::vector<const Knob*>& all_catalogue();
/// nullptr when there is no such knob.
const Knob* find_knob(std::string_view name);

std::string_view to_string(ValueType type);
std::string_view to_string(KnobClass knob_class);

/// The canonical text of a value ("true", "8", "0.0002", "bf16"); nothing when `text` is not of the knob's type.
/// Booleans are true/false only in canonical form; yes/no/on/off/True/1 are read.
std::optional<std::string> canonical_value(const Knob& knob, std::string_view text);

}  // namespace unidle::knobs
