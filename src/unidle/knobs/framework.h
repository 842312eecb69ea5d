// What is known of the frameworks whose configurations are read and edited: how their files are recognised, which words
// they take, which keys they read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/knob.h"

namespace unidle::knobs {

/// All words that a framework takes under a key. Of several for one value, the one that its documentation recommends
/// stands first.
struct Vocabulary {
  std::string knob;
  std::string key;  // the last of the path
  std::vector<std::string> words;
};

/// A key that a framework reads although the file may not have it. Under `beside`: next to a key of that name, so that
/// it lands in the right group; otherwise a path from the top.
struct Addition {
  std::string knob;
  std::string key;
  std::string beside;
  Meaning meaning = Meaning::kValue;
};

/// A knob that a file alone cannot change: the program, or another file, has to agree.
struct Agreement {
  std::string knob;
  std::string when;  // only where a key of this name has a value; empty: always
  std::string reason;
};

struct Framework {
  std::string name;
  std::string source;  // version and place where all of this was read
  /// A file is one of this framework where it has `least` of these keys, at whatever depth.
  struct Signature {
    int least = 0;
    std::string keys;  // between blanks
  };
  std::vector<Signature> signatures;
  std::vector<Vocabulary> vocabulary = {};
  std::vector<Addition> additions = {};
  std::vector<Agreement> agreements = {};
  /// Keys of settings that are no switch of mixed precision: the format that weights are loaded in.
  std::string weight_formats = {};
};

/// In the order in which signatures are tried: the more specific before those that they build on.
const std::vector<Framework>& all_frameworks();
/// nullptr for "pytorch", "unidle" and unknown names.
const Framework* find_framework(std::string_view name);
/// The words that `framework` takes at `path`; nullptr where that is not known.
const std::vector<std::string>* words_at(std::string_view framework, std::string_view knob, std::string_view path);

}  // namespace unidle::knobs
