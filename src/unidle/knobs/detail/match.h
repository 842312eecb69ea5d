// Finds the knob that a key names.
#pragma once

#include <optional>
#include <string_view>

#include "unidle/knobs/detail/words.h"
#include "unidle/knobs/recognize.h"

namespace unidle::knobs::detail {

struct Match {
  const Knob* knob = nullptr;
  const Spelling* spelling = nullptr;
  Phase phase = Phase::kTraining;
};

/// Matches the words of the last key of `path`, or of it and its parent, and considers the keys further up. Of the
/// value it considers only whether it is one that no other setting has.
std::optional<Match> match_path(std::string_view path, std::string_view framework, std::string_view value = {});

/// Matches only the words of a flag or variable.
std::optional<Match> match_words(const Words& words, std::string_view framework);

/// Whether the key only groups parts, so that its parent names the subject: params, init_args, config.
bool is_container(std::string_view key);

}  // namespace unidle::knobs::detail
