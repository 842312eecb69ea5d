// The frameworks whose configurations are read and edited: how to recognise their files, which words they accept, which
// keys they read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/knob.h"

namespace unidle::knobs {

/// All words that a framework accepts for a key. Among synonyms, the one that its documentation recommends comes first.
struct Vocabulary {
  std::string knob;
  std::string key;  // last key of the path
  std::vector<std::string> words;
};

/// A key that a framework reads even if the file lacks it. With `beside`, it goes next to a key of that name, so that
/// it lands in the right group; otherwise `key` is a path from the top.
struct Addition {
  std::string knob;
  std::string key;
  std::string beside;
  Meaning meaning = Meaning::kValue;
};

/// A knob that one file cannot change alone: the program, or another file, has to agree.
struct Agreement {
  std::string knob;
  std::string when;  // applies only if a key of this name has a value; empty: always
  std::string reason;
};

struct Framework {
  std::string name;
  std::string source;  // version and place where this was read
  /// A file belongs to this framework if it has at least `least` of these keys, at any depth.
  struct Signature {
    int least = 0;
    std::string keys;  // separated by blanks
  };
  std::vector<Signature> signatures;
  std::vector<Vocabulary> vocabulary = {};
  std::vector<Addition> additions = {};
  std::vector<Agreement> agreements = {};
  /// Keys for the format in which weights are loaded; they do not switch mixed precision.
  std::string weight_formats = {};
};

/// In the order of matching: specific frameworks before those that they build on.
const std::vector<Framework>& all_frameworks();
/// nullptr for "pytorch", "unidle" and unknown names.
const Framework* find_framework(std::string_view name);
/// The words that `framework` accepts at `path`; nullptr if unknown.
const std::vector<std::string>* words_at(std::string_view framework, std::string_view knob, std::string_view path);

}  // namespace unidle::knobs
