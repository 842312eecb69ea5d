// Splits Python source into tokens: just enough to distinguish names, numbers, strings, brackets and comments.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::knobs {

struct PythonToken {
  enum class Kind { kName, kNumber, kString, kOperator, kNewline, kEnd };
  Kind kind = Kind::kEnd;
  std::size_t begin = 0;
  std::size_t end = 0;
  int line = 0;            // 1-based
  std::size_t indent = 0;  // of the line on which a statement begins; set at its first token only
  bool simple = false;     // for a string: no f, b or triple quotes, so that its value is its text
};

/// Newlines inside brackets and after a backslash do not end a statement and are not tokens; the last token is kEnd.
/// Throws kInput with subject "name:line".
std::vector<PythonToken> tokenize_python(const std::string& text, const std::string& name);

/// The value of a simple string.
std::string python_string_value(std::string_view source);

}  // namespace unidle::knobs
