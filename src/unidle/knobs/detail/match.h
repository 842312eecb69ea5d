// Which knob a key names.
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

/// By the words of the last key of `path`, or of it and the key above, and by what stands further above. The value is
/// not looked at.
std::optional<Match> match_path(std::string_view path, std::string_view framework);

/// By the words of a flag or variable alone.
std::optional<Match> match_words(const Words& words, std::string_view framework);

/// The key above says which subject; words like these only hold its parts: params, init_args, config.
bool is_container(std::string_view key);

}  // namespace unidle::knobs::detail
