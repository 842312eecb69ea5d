// Values that stand for the value of another key: ${a.b}, @a, %(a)s.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs::detail {

/// True when the text is, or contains, something that the program replaces: ${...}, %(...)s, @name.
bool is_computed(std::string_view value);

/// The scalar that finally holds the literal: `scalar` itself, or what its whole value refers to, over as many steps as
/// it takes. nullptr when the value is computed in another way (a resolver call, text around the reference), refers to
/// nothing in this file, or in a circle.
const Scalar* literal_of(const ConfigFile& file, const Scalar& scalar);

/// A key whose value changes with that of another one.
struct KeyReader {
  std::string path;  // as the program sees it: what a merge key copies stands beside the merge key
  int line = 0;
  bool whole = false;  // its value is the other one's, not made from it
};

/// All keys but `scalar`'s own that get its value or make theirs from it, over any number of steps: aliases, what merge
/// keys and aliased collections copy, references to it or to a collection around it, also inside of longer texts, and
/// in Python files expressions with its name. In the order of the file.
std::vector<KeyReader> readers_of(const ConfigFile& file, const Scalar& scalar);

}  // namespace unidle::knobs::detail
