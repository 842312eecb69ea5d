// Sets arguments of calls in Python source.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/python_tokens.h"

namespace unidle::knobs {

/// Source text and its tokens. Never runs the source. Immutable; thread-safe to read.
class PythonSource {
 public:
  /// Index of the token of an opening bracket.
  using Call = std::size_t;

  /// Nothing when strings and brackets show that the text is not valid Python.
  static std::optional<PythonSource> read(std::string text);

  /// How many calls of one of `names` the text has, ignoring definitions.
  std::size_t count_calls(const std::vector<std::string_view>& names) const;
  /// The only one.
  std::optional<Call> only_call(const std::vector<std::string_view>& names) const { return find(names, std::nullopt); }
  /// The same on line `line`, counted from 1.
  std::optional<Call> call_on_line(int line, const std::vector<std::string_view>& names) const {
    return find(names, line);
  }

  /// What the call passes for an argument.
  enum class Given {
    kUnknown,     // it unpacks * or **, which may contain it
    kNot,         // nothing: the argument has its default
    kLiteral,     // a number, a string, True, False or None
    kExpression,  // anything else
  };
  Given given(Call call, std::string_view name) const;
  /// The same for an argument that may also be the second positional one.
  Given given_second(Call call, std::string_view name) const;
  /// The name of the called function, without what owns it.
  std::string name_of(Call call) const { return std::string(word(call - 1)); }
  /// The line on which it begins, from 1.
  int line_of(Call call) const { return tokens_[call - 1].line; }
  /// The source text of a keyword argument's value; nothing when the call does not give it.
  std::optional<std::string> value_of(Call call, std::string_view name) const;
  /// The number of arguments without a name.
  std::size_t positional(Call call) const;

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

  explicit PythonSource(std::string text, std::vector<PythonToken> tokens)
      : text_(std::move(text)), tokens_(std::move(tokens)) {}
  std::string_view word(std::size_t token) const;
  bool is_keyword(const Argument& argument) const;
  bool unpacks(const Argument& argument) const { return word(argument.first) == "*"; }
  bool calls(std::size_t token, const std::vector<std::string_view>& names) const;
  std::optional<Call> find(const std::vector<std::string_view>& names, std::optional<int> line) const;
  bool begins_statement(std::size_t token) const;
  std::size_t next_statement(std::size_t token) const;
  /// The offset at which that token's line begins.
  std::size_t line_begin(std::size_t token) const;
  /// The offset at the top of the file where `import unidle` can be inserted; the file's size when it is already
  /// imported.
  std::optional<std::size_t> place_of_import() const;
  std::vector<Argument> arguments_of(Call call) const;
  Given value_given(std::size_t first, std::size_t last) const;
  std::string replaced(std::size_t first, std::size_t last, std::string_view value) const;

  std::string text_;
  std::vector<PythonToken> tokens_;
};

}  // namespace unidle::knobs
