// Changes a knob in a configuration that has its own names for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/recognize.h"

namespace unidle::knobs {

/// A literal that set_knob replaced, in the file's spelling; one change may need several.
struct Edit {
  std::string knob;
  std::string path;  // key with the literal
  std::string from;  // empty when the key is new
  std::string to;
  /// The old word is from a family that many programs know completely; whether this program does is unknown.
  bool guessed = false;
};

/// Sets the training side of `knob` to `value` in the file's own spelling: bf16-mixed, True, nhwc, or two flags of
/// which one is turned off. No other setting changes: a literal shared by other keys (through a YAML alias, ${a}, @a)
/// is edited in place only if all of them belong to this knob; otherwise the knob's key gets its own literal. Adds a
/// key only if the framework is known to read it. Throws kInput and changes nothing when the file cannot express the
/// value: the knob has no key, the program computes the value, batch sizes differ between stages, or other settings
/// take their value from the knob's key.
std::vector<Edit> set_knob(ConfigFile& file, std::string_view knob, const Value& value);

/// Whether set_knob would find or create a key; never throws for the file's content.
bool can_set(const ConfigFile& file, std::string_view knob, const Value& value);

}  // namespace unidle::knobs
