// Reads the constants of a Python file, with positions. Does not run the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs::detail {

/// A pair of brackets with keys: dict(a=1), {'a': 1}, AdamW(lr=1e-4).
struct PythonGroup {
  std::string path;
  bool call = false;  // keys are keywords, otherwise strings
  std::size_t open = 0;
  std::size_t last_begin = 0;   // start of the last entry; 0 when there is none
  std::size_t content_end = 0;  // after the last byte that is neither blank nor comment
  std::size_t close = 0;
  char quote = '"';  // of a display's keys
};

struct PythonFile {
  std::vector<Scalar> scalars;
  std::vector<PythonGroup> groups;
  std::size_t last_assignment_end = 0;  // at module level; 0 when there is none
};

/// Throws kInput with subject "name:line" for an unclosed string or bracket.
PythonFile read_python(const std::string& text, const std::string& name);

}  // namespace unidle::knobs::detail
