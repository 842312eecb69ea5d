// The operations of a file format for ConfigFile: find values, replace one, insert one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/config_file.h"

namespace unidle::knobs::detail {

struct Syntax {
  /// Every scalar in file order. Throws kInput with subject "name:line".
  std::vector<Scalar> (*scalars)(const std::string& text, const std::string& name);
  /// The source text for `value` in place of `old`.
  std::string (*replacement)(const std::string& text, const Scalar& old, std::string_view value);
  /// The text with a new key; throws kInput if none can be added.
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

/// Literals assigned in modules and classes, the keyword arguments and dict displays in assigned values, and the
/// defaults of add_argument().
std::vector<Scalar> python_scalars(const std::string& text, const std::string& name);
std::string python_replacement(const std::string& text, const Scalar& old, std::string_view value);
std::string python_inserted(const std::string& text, const std::string& name, std::string_view path,
                            std::string_view value);

/// Whether to quote `value`: old quotes stay, except that a number or boolean replaces the word "auto" or a reference
/// ("${a}") without quotes.
bool keeps_quotes(const Scalar& old, bool is_literal);

}  // namespace unidle::knobs::detail
