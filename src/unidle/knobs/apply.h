// Changes a knob in a configuration that has its own names for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/recognize.h"

namespace unidle::knobs {

/// One literal of a file that set_knob replaced: words of the file, of which a change may need several.
struct Edit {
  std::string knob;
  std::string path;  // key with the literal
  std::string from;  // empty when the key is new
  std::string to;
  /// The old word is from a family that many programs know completely; whether this program does is unknown.
  bool guessed = false;
};

/// Makes the file say `value` for the training side of `knob`, in its own spelling: bf16-mixed, True, nhwc,
/// two flags of which one goes off. No other setting changes: a literal that others share (by a YAML alias, ${a}, @a)
/// is edited where it stands only when all of them are this knob's; otherwise the knob's own key gets a literal of its
/// own. A key is added only where the framework is known to read it. Nothing is edited and kInput is thrown when the
/// file cannot say it: the knob has no key, the value is computed by the program, batch sizes differ between stages, or
/// other settings take their value from the knob's key.
std::vector<Edit> set_knob(ConfigFile& file, std::string_view knob, const Value& value);

/// Whether set_knob would find or make a place; never throws for what the file says.
bool can_set(const ConfigFile& file, std::string_view knob, const Value& value);

}  // namespace unidle::knobs
