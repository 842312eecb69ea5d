// Knobs: the settings that unidle understands, one file for each in catalogue/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/value.h"

namespace unidle::knobs {

enum class ValueType { kBool, kInt, kDouble, kChoice };
/// exact does not change the arithmetic; numeric changes rounding; semantic changes what is trained.
enum class KnobClass { kExact, kNumeric, kSemantic };

/// What the value of a key says about its knob.
enum class Meaning {
  kValue,            // the value itself, in the knob's type
  kInverted,         // the opposite of a boolean: no_pin_memory
  kGlobalBatch,      // batch.size summed over devices, and over accumulation where the program does so
  kSwitch,           // on or off, or a choice: use_amp, compile
  kMeansFp16,        // a switch that selects fp16
  kMeansBf16,        // a switch that selects bf16
  kFormat,           // the number format: amp_dtype, precision
  kOption,           // a detail that matters only if the knob is on: compile backend
  kMemoryFormat,     // channels_last, nhwc or another format
  kMatmulPrecision,  // highest means no TF32; high and medium mean TF32
  kOptimizerName,    // a name that contains "fused" or not
};

/// One way in which configurations name a knob. `words` are the words of the key in any order and case, however they
/// are joined: "?num worker" matches worker, num_workers, NUM_WORKERS and --num-workers. A question mark makes a word
/// optional, a bar separates alternatives; a key with any other word does not match. If the key alone does not match,
/// it is tried together with its parent: compile.enable.
struct Spelling {
  std::string words;
  Meaning meaning = Meaning::kValue;
  bool weak = false;            // too general to count without another knob in the same group
  std::string frameworks = {};  // only in files of these frameworks; empty: in all
};

/// How configurations name a knob. All strings are lists of words separated by blanks.
struct Names {
  std::vector<Spelling> spellings;           // the first match counts
  std::string topic = {};                    // the path of any reference to this knob's value has one of these
  std::string never_under = {};              // keys below one of these mean something else
  std::string but_under = {};                // unless one of these is nearer
  std::vector<std::string> own_values = {};  // values that mean this knob below any key
  std::string environment = {};              // variables that set the knob
};

/// How to change a knob that neither a file nor a command's word sets.
struct Changing {
  /// The shim can set it in a running program (python/shim); the effect is read back from the program.
  bool at_run_time = false;
  std::vector<Value> not_at_run_time = {};  // values that it cannot set
  /// How to write the setting in Python; {0} is the value in Python's syntax. `code_for` is used if it depends on the
  /// value or the device ("cpu", "cuda").
  std::string code = {};
  std::string (*code_for)(const Value& value, const std::string& device) = nullptr;
  /// The object that the code belongs to: loader, dataset, model, optimizer, zero_grad or validation; empty if the code
  /// may be anywhere.
  std::string code_place = {};
  std::string argument = {};   // if it is a keyword argument of a call at that place
  std::string variables = {};  // that set it to true before a command, as NAME=VALUE
  /// The same for a program whose loader is from the package unidle; empty if there is no such setting.
  std::string package_code = {};
  std::string package_argument = {};  // can be set in a running program too
};

/// Everything that is known about a knob, for all programs.
struct Knob {
  std::string name;
  ValueType type;
  KnobClass knob_class;
  std::vector<std::string> choices = {};  // of a kChoice
  std::string when_true = {};             // the choice that `true` means; empty: ambiguous
  std::optional<Value> fallback;          // the value if a program does not set it
  std::string explanation;                // one sentence for users
  Names names = {};
  Changing change = {};
  bool gpu_only = false;                      // no effect when training on a CPU
  bool compared = false;                      // configured and effective values can be compared
  std::vector<std::string> leaves_open = {};  // configured values with which the program chooses
};

const std::vector<const Knob*>& all_catalogue();
/// nullptr if the knob does not exist.
const Knob* find_knob(std::string_view name);

/// Throws kUsage with `subject`, and the knob that `name` may have meant, if the knob does not exist.
const Knob& knob_named(std::string_view name, const std::string& subject);

/// Whether the shim can set this value in a running program; without a value, whether it can set any.
bool applies_at_run_time(std::string_view knob, const std::optional<Value>& value = {});
/// False for a knob without effect on `device` ("cpu", "cuda", ...).
bool matters_on(std::string_view device, std::string_view knob);
/// kExact for an unknown knob.
KnobClass class_of(std::string_view knob);

std::string_view to_string(ValueType type);
std::string_view to_string(KnobClass knob_class);
std::string_view to_string(Meaning meaning);

/// Nothing if `text` is not a value of the knob. Booleans may also be yes, no, on, off, True or 1.
std::optional<Value> parse_value(const Knob& knob, std::string_view text);
/// Whether the knob accepts the value.
bool takes(const Knob& knob, const Value& value);

}  // namespace unidle::knobs
