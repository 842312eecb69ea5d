// What a person wrote beside a value, and whether that is why the value is what it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unidle/knobs/config_file.h"
#include "unidle/knobs/recognize.h"

namespace unidle::knobs {

/// The comments that belong to a value: the one behind it on its line, and those on lines of their own right above it.
/// Without their marks, joined by a blank; empty where there is none.
std::string comment_of(const ConfigFile& file, const Scalar& scalar);

/// True for words that say why, not what: "only works with", "because", "debuggers do not like", "avoids a deadlock". A
/// false reason costs a proposal; a missed one costs a run. "use 1 for galore" is one beside a 1.
bool gives_reason(std::string_view comment, std::string_view value = {});

/// A setting that a person decided on, with the comment that says why.
struct Decision {
  std::string path;
  int line = 0;
  std::string comment;
};

/// The first training setting of `knob` whose comment gives a reason.
std::optional<Decision> decision_on(const ConfigFile& file, const Recognition& recognition, std::string_view knob);

/// The comment has `word`, as one that lists what can be chosen does: "fp32, fp16 or bf16".
bool names_word(std::string_view comment, std::string_view word);

}  // namespace unidle::knobs
