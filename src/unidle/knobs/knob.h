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

/// What the value under a key says about its knob.
enum class Meaning {
  kValue,            // the value itself, of the knob's type
  kInverted,         // a boolean that says the opposite: no_pin_memory
  kGlobalBatch,      // batch.size summed over devices, and over accumulation where the program does so
  kSwitch,           // on or off, or a choice: use_amp, compile
  kMeansFp16,        // a switch that chooses fp16 when it is on
  kMeansBf16,        // a switch that chooses bf16 when it is on
  kFormat,           // the number format: amp_dtype, precision
  kOption,           // a detail that matters only while the knob is on: compile backend
  kMemoryFormat,     // channels_last, nhwc or something else
  kMatmulPrecision,  // highest means no TF32; high and medium mean TF32
  kOptimizerName,    // a name that contains "fused" or not
};

/// One way in which configurations of others name a knob. `words` are the words of the key in any order and case,
/// however it joins them: "?num worker" is worker, num_workers, NUM_WORKERS and --num-workers. A question mark makes a
/// word optional, a bar separates alternatives; a key with any other word is another key. Where the key alone does not
/// match, the key above it is tried along with it: compile.enable.
struct Spelling {
  std::string words;
  Meaning meaning = Meaning::kValue;
  bool weak = false;            // too general to count without another knob beside it
  std::string frameworks = {};  // only in files of these; empty: in all
};

/// How configurations name a knob. All strings hold words between blanks.
struct Names {
  std::vector<Spelling> spellings;  // the first that matches counts
  std::string topic = {};           // one of them is in the path of whatever refers to this knob's value
  std::string never_under = {};     // keys below one of these are something else
  std::string environment = {};     // variables that set it
};

/// How a knob is changed where no file and no word of a command says it.
struct Changing {
  /// The shim turns it in a running program (python/shim); whether that took is read back from the program.
  bool at_run_time = false;
  std::vector<std::string> not_at_run_time = {};  // values that it cannot give it
  /// How a person writes it in Python; {0} is the value as Python has it. `code_for` where that depends on the value or
  /// the device ("cpu", "cuda").
  std::string code = {};
  std::string (*code_for)(const std::string& value, const std::string& device) = nullptr;
  /// What of the program that code belongs to: loader, dataset, model, optimizer, zero_grad or validation; empty when
  /// it may stand anywhere.
  std::string code_place = {};
  std::string argument = {};  // where it is a keyword argument of a call at that place
  /// The same where the program's loader is one of the package unidle; empty where that has no such thing.
  std::string package_code = {};
  std::string package_argument = {};  // which a running program can be given too
};

/// All that is true of a knob, whatever the program.
struct Knob {
  std::string name;
  ValueType type;
  KnobClass knob_class;
  std::vector<std::string> choices = {};  // of a kChoice
  std::string when_true = {};             // the choice that `true` stands for; empty: none, it is a riddle
  std::string fallback;                   // the value of a program that does not set it
  std::string explanation;                // one sentence for a person
  Names names = {};
  Changing change = {};
  bool gpu_only = false;  // changes nothing where a CPU trains
  bool compared = false;  // what a file says of it and what the live program has are the same kind of value
  std::vector<std::string> leaves_open = {};  // configured values that leave the choice to the program
};

const std::vector<const Knob*>& all_catalogue();
/// nullptr when there is no such knob.
const Knob* find_knob(std::string_view name);

/// The shim can give the knob this value in a running program; without a value: some value.
bool applies_at_run_time(std::string_view knob, std::string_view value = {});
/// False for a knob that changes nothing where `device` ("cpu", "cuda", ...) trains.
bool matters_on(std::string_view device, std::string_view knob);
/// exact for what is no knob.
KnobClass class_of(std::string_view knob);

std::string_view to_string(ValueType type);
std::string_view to_string(KnobClass knob_class);
std::string_view to_string(Meaning meaning);

/// The canonical text of a value ("true", "8", "0.0002", "bf16"); nothing when `text` is not of the knob's type.
/// Booleans are true/false only in canonical form; yes/no/on/off/True/1 are read.
std::optional<std::string> canonical_value(const Knob& knob, std::string_view text);

}  // namespace unidle::knobs
