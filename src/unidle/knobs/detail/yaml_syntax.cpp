#include "unidle/knobs/detail/document.h"
#include "unidle/knobs/detail/emit.h"
#include "unidle/knobs/detail/insert.h"
#include "unidle/knobs/detail/links.h"
#include "unidle/knobs/detail/syntax.h"

namespace unidle::knobs::detail {

bool keeps_quotes(const Scalar& old, bool is_literal) {
  const bool only_for_the_word = old.value == "auto" || is_computed(old.value);
  return old.quoted && !(only_for_the_word && is_literal);
}

std::vector<Scalar> yaml_scalars(const std::string& text, const std::string& name) {
  return Document::parse(text, name).scalars();
}

std::string yaml_replacement(const std::string& text, const Scalar& old, std::string_view value) {
  const bool absent = old.begin == old.end;
  const char quote = keeps_quotes(old, is_json_literal(value)) ? text[old.begin] : '\0';
  // Whether the scalar is in a flow collection does not matter: quoting a comma is always valid.
  return (absent ? " " : "") + written(value, quote, true);
}

std::string yaml_inserted(const std::string& text, const std::string& name, std::string_view path,
                          std::string_view value) {
  return inserted(text, Document::parse(text, name), name, path, value);
}

const Syntax& syntax_of(Format format) {
  static constexpr Syntax kYaml{yaml_scalars, yaml_replacement, yaml_inserted};
  static constexpr Syntax kJson{json_scalars, json_replacement, json_inserted};
  static constexpr Syntax kToml{toml_scalars, toml_replacement, toml_inserted};
  static constexpr Syntax kPython{python_scalars, python_replacement, python_inserted};
  switch (format) {
    case Format::kYaml: return kYaml;
    case Format::kJson: return kJson;
    case Format::kToml: return kToml;
    case Format::kPython: return kPython;
  }
  return kYaml;
}

}  // namespace unidle::knobs::detail
