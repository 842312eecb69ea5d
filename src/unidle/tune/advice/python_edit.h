// Sets arguments of calls in Python source.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/python_tokens.h"

namespace unidle::tune {

/// Source text and its tokens. Never runs the source. Immutable; thread-safe to read.
class PythonSource {
 public:
  /// Index of the token of an opening bracket.
  using Call = std::size_t;

  /// Nothing when strings and brackets show that the text is not valid Python.
  static std::optional<PythonSource> read(std::string text);

  /// The only call of one of `names` in the text, ignoring definitions.
  std::optional<Call> only_call(const std::vector<std::string_view>& names) const { return find(names, std::nullopt); }
  /// The same on line `line`, counted from 1.
  std::optional<Call> call_on_line(int line, const std::vector<std::string_view>& names) const {
    return find(names, line);
  }

  /// The text with keyword argument `name` set: replaces its value, or adds it after the last argument. Nothing when
  /// the arguments end in **something that may contain it.
  std::optional<std::string> with_argument(Call call, std::string_view name, std::string_view value) const;
  /// The same for an argument that may also be the second positional one.
  std::optional<std::string> with_second_argument(Call call, std::string_view name, std::string_view value) const;
  /// The text with the only integer on the line replaced, as in `count = 4`.
  std::optional<std::string> with_number(int line, std::string_view value) const;

  /// The text with `decorator` on a separate line above the function definition that begins, with its decorators, on
  /// line `line`, and with `import unidle` if missing. Nothing when there is no such function or it already has a
  /// decorator of unidle.
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
  /// The offset at which that token's line begins.
  std::size_t line_begin(std::size_t token) const;
  /// The offset at the top of the file where `import unidle` can be inserted; the file's size when it is already
  /// imported.
  std::optional<std::size_t> place_of_import() const;
  std::vector<Argument> arguments_of(Call call) const;
  std::string replaced(std::size_t first, std::size_t last, std::string_view value) const;

  std::string text_;
  std::vector<knobs::PythonToken> tokens_;
};

}  // namespace unidle::tune
