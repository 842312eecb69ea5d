// Which settings of a configuration file are knobs, whatever framework wrote them.
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
  std::string value;   // as the program gets it: without quotes
  std::string source;  // as the file has it
  /// In the knob's own vocabulary (true, 8, bf16), references followed. Nothing when this setting alone does not tell,
  /// as with "auto" or a switch that leaves the format to another key.
  std::optional<std::string> canonical;
  std::string path;
  int line = 0;           // 1-based
  std::string framework;  // of the file, see framework_of
  std::string literal;    // where the value is written: `path`, or what `path` refers to; empty when it is computed
};

/// A key that is no knob.
struct OtherKey {
  std::string path;
  std::string value;
  int line = 0;
};

struct Recognition {
  std::string file;
  std::string framework;
  std::vector<Recognized> knobs;  // in the order of the file
  std::vector<OtherKey> others;   // all other keys that have a value, in the order of the file
};

/// Rules are about the words of keys, what stands above and beside them and the kind of value, never about file names.
/// What a merge key or an aliased collection copies is not listed again. Thread-safe.
Recognition recognize(const ConfigFile& file);
/// Throws as ConfigFile::load does.
Recognition recognize(const std::filesystem::path& path);

/// What a knob is configured to in one file.
struct Configured {
  std::string value;  // canonical
  std::string path;   // the key that says so; of a format and a switch, the switch when it is off, otherwise the format
  int line = 0;
};

/// For every knob whose training value the file tells, that value; where several settings of one knob contradict each
/// other (two stages with two batch sizes) the knob is left out. A batch size over all devices is no batch.size here.
std::map<std::string, Configured> configured(const Recognition& recognition);

/// "unidle", "huggingface", "accelerate", "deepspeed", "gpt-neox", "lightning", "timm", "ultralytics", "detectron2",
/// "mmengine", "torchtune", "torchtitan", "axolotl", "composer", "hydra", or "pytorch" when nothing tells more.
std::string framework_of(const ConfigFile& file);

std::string_view to_string(Phase phase);

}  // namespace unidle::knobs
