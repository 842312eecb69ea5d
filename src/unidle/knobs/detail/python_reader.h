// The constants of a Python file, with positions. No interpreter: nothing of the file is run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs::detail {

/// A pair of brackets with keys in it: dict(a=1), {'a': 1}, AdamW(lr=1e-4).
struct PythonGroup {
  std::string path;
  bool call = false;  // keys are keywords, otherwise strings
  std::size_t open = 0;
  std::size_t last_begin = 0;   // the last entry; 0 when there is none
  std::size_t content_end = 0;  // behind the last byte that is neither blank nor comment
  std::size_t close = 0;
  char quote = '"';  // of the keys of a display
};

struct PythonFile {
  std::vector<Scalar> scalars;
  std::vector<PythonGroup> groups;
  std::size_t last_assignment_end = 0;  // of the last one at module level; 0 when there is none
};

/// Throws kInput with subject "name:line" for a string or bracket that is not closed.
PythonFile read_python(const std::string& text, const std::string& name);

}  // namespace unidle::knobs::detail
