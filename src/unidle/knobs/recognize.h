// Finds the settings of a configuration file that are knobs, whatever framework wrote it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/config_file.h"
#include "unidle/knobs/knob.h"

namespace unidle::knobs {

enum class Phase { kTraining, kValidation };

struct Recognized {
  std::string knob;  // its name in the catalogue
  Meaning meaning = Meaning::kValue;
  Phase phase = Phase::kTraining;
  std::string value;   // as the program reads it: without quotes
  std::string source;  // as written in the file
  /// The knob's value, references resolved. Nothing if this setting does not determine it, as for "auto" or a switch
  /// that leaves the format to another key.
  std::optional<Value> means;
  std::string path;
  int line = 0;           // 1-based
  std::string framework;  // of the file, see framework_of()
  std::string literal;  // key with the literal: `path`, or the target of its reference; empty if the value is computed
};

/// A key that is not a knob.
struct OtherKey {
  std::string path;
  std::string value;
  int line = 0;
};

struct Recognition {
  std::string file;
  std::string framework;
  std::vector<Recognized> knobs;  // in file order
  std::vector<OtherKey> others;   // all other keys that have a value, in file order
};

/// Matches the words of keys, of their parents and siblings, and the type of the value, but never file names. Does not
/// list again what a merge key or an aliased collection copies. Thread-safe.
Recognition recognize(const ConfigFile& file);
/// Throws like ConfigFile::load.
Recognition recognize(const std::filesystem::path& path);

/// The configured value of a knob in one file.
struct Configured {
  Value value;
  std::string path;  // the key that sets it; for a format with a switch, the switch if it is off, otherwise the format
  int line = 0;
};

/// The training value of every knob that the file determines. Omits a knob whose settings contradict each other (two
/// stages with two batch sizes). A batch size over all devices does not count as batch.size.
std::map<std::string, Configured> configured(const Recognition& recognition);

/// "unidle", "huggingface", "accelerate", "deepspeed", "gpt-neox", "lightning", "timm", "ultralytics", "detectron2",
/// "mmengine", "torchtune", "torchtitan", "axolotl", "composer", "hydra", or "pytorch" if nothing more specific
/// matches.
std::string framework_of(const ConfigFile& file);

std::string_view to_string(Phase phase);

}  // namespace unidle::knobs
