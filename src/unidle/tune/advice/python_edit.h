// Python source in which a call gets an argument.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/python_tokens.h"

namespace unidle::tune {

/// Source text and its tokens. Nothing of it is run. Not changed by what it answers; thread-safe to read.
class PythonSource {
 public:
  /// Index of the token of an opening bracket.
  using Call = std::size_t;

  /// Nothing when it is not valid Python, as far as its strings and brackets tell.
  static std::optional<PythonSource> read(std::string text);

  /// The call of one of `names` that is the only one in the text; definitions are none.
  std::optional<Call> only_call(const std::vector<std::string_view>& names) const { return find(names, std::nullopt); }
  /// The same on the line of that number, from 1.
  std::optional<Call> call_on_line(int line, const std::vector<std::string_view>& names) const {
    return find(names, line);
  }
  /// The call whose bracket lies at that byte.
  std::optional<Call> call_at(std::size_t open) const;

  /// The text with keyword argument `name` set: its value is replaced, or it is added behind the last argument. Nothing
  /// when the arguments end in **something that may hold it.
  std::optional<std::string> with_argument(Call call, std::string_view name, std::string_view value) const;
  /// The same of an argument that may be given as the second one without a name.
  std::optional<std::string> with_second_argument(Call call, std::string_view name, std::string_view value) const;
  /// The text with the only whole number on the line set: of `count = 4`.
  std::optional<std::string> with_number(int line, std::string_view value) const;

  /// The text with `decorator` on a line of its own above the `def` of the function whose definition, with what
  /// decorates it already, begins on the line of that number; and with `import unidle`, where that is not there.
  /// Nothing when there is none, or when it is decorated by unidle already.
  std::optional<std::string> with_decorator(int line, std::string_view decorator) const;

 private:
  struct Argument {
    std::size_t first;  // token
    std::size_t last;
  };

  explicit PythonSource(std::string text, std::vector<knobs::PythonToken> tokens)
      : text_(std::move(text)), tokens_(std::move(tokens)) {}
  std::string_view word(std::size_t token) const;
  bool is_keyword(const Argument& argument) const;
  bool unpacks(const Argument& argument) const { return word(argument.first) == "*"; }
  std::optional<Call> find(const std::vector<std::string_view>& names, std::optional<int> line) const;
  bool begins_statement(std::size_t token) const;
  std::size_t next_statement(std::size_t token) const;
  /// Where the line of that token begins.
  std::size_t line_begin(std::size_t token) const;
  /// Where `import unidle` can stand, at the top of the file; its size when it is there already.
  std::optional<std::size_t> place_of_import() const;
  std::vector<Argument> arguments_of(Call call) const;
  std::string replaced(std::size_t first, std::size_t last, std::string_view value) const;

  std::string text_;
  std::vector<knobs::PythonToken> tokens_;
};

}  // namespace unidle::tune
