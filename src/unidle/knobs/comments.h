// Reads the comments beside a value, and decides whether they give a reason for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unidle/knobs/config_file.h"
#include "unidle/knobs/recognize.h"

namespace unidle::knobs {

/// The comments of a value: the one after it on its line, and those on lines of their own right above it. Without their
/// marks, joined by a blank; empty if there are none.
std::string comment_of(const ConfigFile& file, const Scalar& scalar);

/// Whether the words say why, not what: "only works with", "because", "debuggers do not like", "avoids a deadlock". A
/// false positive costs a proposal, a false negative costs a run. "use 1 for galore" is a reason beside the value 1.
bool gives_reason(std::string_view comment, std::string_view value = {});

/// A setting whose comment says why a person chose it.
struct Decision {
  std::string path;
  int line = 0;
  std::string comment;
};

/// The first training setting of `knob` whose comment gives a reason.
std::optional<Decision> decision_on(const ConfigFile& file, const Recognition& recognition, std::string_view knob);

}  // namespace unidle::knobs
