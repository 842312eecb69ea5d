// What ConfigFile needs of a file format: where the values stand, how one is written, where a new one goes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs::detail {

struct Syntax {
  /// Every scalar in file order. Throws kInput with subject "name:line".
  std::vector<Scalar> (*scalars)(const std::string& text, const std::string& name);
  /// The source that says `value` in place of `old`.
  std::string (*replacement)(const std::string& text, const Scalar& old, std::string_view value);
  /// The text with a new key; throws kInput where none can be added.
  std::string (*inserted)(const std::string& text, const std::string& name, std::string_view path,
                          std::string_view value);
};

const Syntax& syntax_of(Format format);

std::vector<Scalar> yaml_scalars(const std::string& text, const std::string& name);
std::string yaml_replacement(const std::string& text, const Scalar& old, std::string_view value);
std::string yaml_inserted(const std::string& text, const std::string& name, std::string_view path,
                          std::string_view value);

/// JSON with // and /* */ comments and trailing commas.
std::vector<Scalar> json_scalars(const std::string& text, const std::string& name);
std::string json_replacement(const std::string& text, const Scalar& old, std::string_view value);
std::string json_inserted(const std::string& text, const std::string& name, std::string_view path,
                          std::string_view value);

std::vector<Scalar> toml_scalars(const std::string& text, const std::string& name);
std::string toml_replacement(const std::string& text, const Scalar& old, std::string_view value);
std::string toml_inserted(const std::string& text, const std::string& name, std::string_view path,
                          std::string_view value);

/// Assignments of literals in modules and classes, the keyword arguments and dict displays on their right side, and the
/// defaults of add_argument().
std::vector<Scalar> python_scalars(const std::string& text, const std::string& name);
std::string python_replacement(const std::string& text, const Scalar& old, std::string_view value);
std::string python_inserted(const std::string& text, const std::string& name, std::string_view path,
                            std::string_view value);

/// True when `value` is to be written between quotes, given what stood there: old quotes stay, except that the word
/// "auto" and a reference ("${a}") make room for a number or boolean.
bool keeps_quotes(const Scalar& old, bool is_literal);

}  // namespace unidle::knobs::detail
