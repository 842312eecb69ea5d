// TOML: toml++ parses it and reports the start of each value; the end follows from the first byte.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "unidle/base/error.h"
#include "unidle/knobs/detail/emit.h"
#include "unidle/knobs/detail/insert.h"
#include "unidle/knobs/detail/scan.h"
#include "unidle/knobs/detail/syntax.h"

namespace unidle::knobs::detail {

namespace {

constexpr std::string_view kOpeners = "{[,=";

/// Converts positions in lines and code points, both counted from 1, to bytes.
class Positions {
 public:
  explicit Positions(std::string_view text) : bytes_(text.size()) {
    lines_.push_back(0);
    for (std::size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0; at < text.size(); ++at) {
      if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80) {
        starts_.push_back(static_cast<std::uint32_t>(at));
      }
      if (text[at] == '\n') {
        lines_.push_back(starts_.size());
      }
    }
  }

  std::size_t byte(const toml::source_position& position) const {
    if (position.line < 1 || position.column < 1 || position.line > lines_.size()) {
      return bytes_;
    }
    const std::size_t point = lines_[position.line - 1] + position.column - 1;
    return point < starts_.size() ? starts_[point] : bytes_;
  }

 private:
  std::size_t bytes_;
  std::vector<std::uint32_t> starts_;  // of all code points
  std::vector<std::size_t> lines_;     // index of each line's first code point
};

std::size_t end_of_toml_value(std::string_view text, std::size_t begin) {
  for (const std::string_view quotes : {std::string_view("\"\"\""), std::string_view("'''")}) {
    if (text.compare(begin, 3, quotes) != 0) {
      continue;
    }
    for (std::size_t at = begin + 3; at < text.size(); ++at) {
      if (quotes[0] == '"' && text[at] == '\\') {
        ++at;
      } else if (text.compare(at, 3, quotes) == 0) {
        while (at + 3 < text.size() && text[at + 3] == quotes[0]) {
          ++at;  // quotes right before the closing ones are part of the text
        }
        return at + 3;
      }
    }
    return text.size();
  }
  if (text[begin] == '"' || text[begin] == '\'') {
    const char quote = text[begin];
    for (std::size_t at = begin + 1; at < text.size(); ++at) {
      if (quote == '"' && text[at] == '\\') {
        ++at;
      } else if (text[at] == quote) {
        return at + 1;
      }
    }
    return text.size();
  }
  const std::size_t end = std::min(text.find_first_of(",]}#\r\n", begin), text.size());
  const std::size_t last = text.find_last_not_of(" \t", end == 0 ? 0 : end - 1);
  return std::max(begin, last + 1);
}

/// Converts TOML's special number spellings (10_000, 0x20, +5) to the usual ones; other values are unchanged.
std::string plain_number(const toml::node& node, std::string source) {
  const bool based = source.starts_with("0x") || source.starts_with("0o") || source.starts_with("0b");
  if (const auto* whole = node.as_integer(); whole != nullptr && based) {
    return std::to_string(whole->get());
  }
  if (node.is_number()) {
    std::erase(source, '_');
    source.erase(0, source.starts_with('+') ? 1 : 0);
  }
  return source;
}

/// toml++ accepts keys of any number of parts, creates nested tables for them and recurses for each. Throws kInput when
/// the parts of keys add up to more levels than any configuration has; toml++ reports all other errors.
class DepthCheck {
 public:
  DepthCheck(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  void run() {
    for (std::size_t at = 0; at < text_.size(); ++at) {
      const char c = text_[at];
      if (c == '"' || c == '\'') {
        at = end_of_toml_value(text_, at) - 1;
      } else if (c == '#') {
        at = std::min(text_.find('\n', at), text_.size()) - 1;
      } else {
        take(c, at);
      }
    }
  }

 private:
  static constexpr std::size_t kDeepest = 200;

  void take(char c, std::size_t at) {
    if (c == '.') {
      ++levels_;
    } else if (c == '{' || c == '[') {
      open_.push_back(++levels_);
    } else if ((c == '}' || c == ']') && !open_.empty()) {
      levels_ = open_.back() - 1;
      open_.pop_back();
    } else if (c == ',' || c == '\n') {
      levels_ = open_.empty() ? 0 : open_.back();
    }
    if (levels_ > kDeepest) {
      const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      throw Error(ErrorCode::kInput, fmt::format("{}:{}", name_, line),
                  fmt::format("is nested deeper than {} levels", kDeepest));
    }
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t levels_ = 0;         // of the current key, including the enclosing brackets
  std::vector<std::size_t> open_;  // levels_ outside each open bracket
};

toml::table parse(const std::string& text, const std::string& name) {
  DepthCheck(text, name).run();
  try {
    return toml::parse(std::string_view(text));
  } catch (const toml::parse_error& failure) {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}", name, failure.source().begin.line),
                fmt::format("is not valid TOML: {}", failure.description()));
  }
}

class Collector {
 public:
  explicit Collector(const std::string& text) : text_(text), positions_(text) {}

  void visit(const toml::node& node, const std::string& path) {
    if (const toml::table* table = node.as_table()) {
      for (const auto& [key, value] : *table) {
        const std::string name(key.str());
        visit(value, path.empty() ? name : path + "." + name);
      }
    } else if (const toml::array* array = node.as_array()) {
      for (std::size_t i = 0; i < array->size(); ++i) {
        visit(*array->get(i), fmt::format("{}[{}]", path, i));
      }
    } else {
      add(node, path);
    }
  }

  std::vector<Scalar> take() {
    std::stable_sort(scalars_.begin(), scalars_.end(),
                     [](const Scalar& a, const Scalar& b) { return a.begin < b.begin; });
    return std::move(scalars_);
  }

 private:
  void add(const toml::node& node, const std::string& path) {
    Scalar scalar;
    scalar.path = path;
    scalar.begin = positions_.byte(node.source().begin);
    scalar.line = static_cast<int>(node.source().begin.line);
    if (scalar.begin >= text_.size()) {
      return;
    }
    scalar.end = end_of_toml_value(text_, scalar.begin);
    const std::string source = text_.substr(scalar.begin, scalar.end - scalar.begin);
    if (const auto* string = node.as_string()) {
      scalar.quoted = true;
      scalar.value = string->get();
      scalar.editable = !source.starts_with("\"\"\"") && !source.starts_with("'''");
    } else {
      scalar.value = plain_number(node, source);
    }
    scalars_.push_back(std::move(scalar));
  }

  const std::string& text_;
  Positions positions_;
  std::vector<Scalar> scalars_;
};

/// Whether the value is a number or boolean in TOML's spelling.
bool is_toml_literal(std::string_view value) { return value != "null" && is_json_literal(value); }

std::string written_toml(std::string_view value, char quote) {
  const bool single = quote == '\'' && value.find('\'') == std::string_view::npos && !has_control(value);
  return single ? fmt::format("'{}'", value) : written(value, '"', true);
}

/// Inserts a new key into an existing table.
class TomlInserter {
 public:
  TomlInserter(const std::string& text, const std::string& name, std::string_view path, std::string_view value)
      : text_(text),
        name_(name),
        path_(path),
        value_(is_toml_literal(value) ? std::string(value) : written_toml(value, '"')),
        root_(parse(text, name)),
        positions_(text),
        segments_(split_path(path)) {}

  std::string run() const {
    const toml::table* table = &root_;
    std::size_t used = 0;
    for (; used + 1 < segments_.size(); ++used) {
      const toml::node* child = table->get(segments_[used].key);
      if (child == nullptr) {
        break;
      }
      if (!child->is_table() || !segments_[used].indices.empty()) {
        throw Error(ErrorCode::kInput, fmt::format("{}:{}: {}", name_, child->source().begin.line, path_),
                    "cannot be added: its parent is not a table");
      }
      table = child->as_table();
    }
    std::string rest;
    for (std::size_t i = used; i < segments_.size(); ++i) {
      rest += (rest.empty() ? "" : ".") + segments_[i].key;
    }
    if (table->is_inline()) {
      return into_inline(*table, rest);
    }
    const bool new_table = used + 1 < segments_.size();
    return new_table ? new_section() : after_last(*table, used == 0, rest);
  }

 private:
  std::string into_inline(const toml::table& table, const std::string& rest) const {
    const std::size_t open = positions_.byte(table.source().begin);
    const FlowEnd end = end_of_flow(text_, open, kOpeners);
    std::string result = text_;
    const bool empty = text_.find_first_not_of(" \t", open + 1) == end.close;
    return result.insert(empty ? open + 1 : end.content_end,
                         (empty ? "" : ", ") + fmt::format("{} = {}", rest, value_));
  }

  std::string new_section() const {
    const std::string eol = line_end_of(text_);
    const std::size_t dot = path_.rfind('.');
    std::string result = text_;
    result += result.empty() || result.ends_with('\n') ? "" : eol;
    return result + (result.empty() ? "" : eol) +
           fmt::format("[{}]{}{} = {}{}", path_.substr(0, dot), eol, path_.substr(dot + 1), value_, eol);
  }

  /// A key on a line of the table itself; tables below it have headers of their own.
  struct Own {
    std::size_t line = 0;  // first byte of its line
    std::size_t end = 0;   // end of the line on which its value ends
  };

  std::vector<Own> own_keys(const toml::table& table) const {
    std::vector<Own> keys;
    for (const auto& [key, child] : table) {
      const bool section = child.is_table() && !child.as_table()->is_inline();
      const std::size_t begin = positions_.byte(child.source().begin);
      if (section || child.is_array_of_tables() || begin >= text_.size()) {
        continue;
      }
      const bool simple = !child.is_table() && !child.is_array();
      const std::size_t end = simple ? end_of_toml_value(text_, begin) : end_of_flow(text_, begin, kOpeners).close;
      keys.push_back({line_begin(text_, begin), line_end(text_, end)});
    }
    std::sort(keys.begin(), keys.end(), [](const Own& a, const Own& b) { return a.end < b.end; });
    return keys;
  }

  /// "key = value" with the spacing of the line `like`.
  std::string line_like(const Own& like, const std::string& key) const {
    const std::string line = text_.substr(like.line, like.end - like.line);
    const std::size_t equals = line.find('=');
    const bool tight = equals != std::string::npos && equals > 0 && line[equals - 1] != ' ';
    const std::string indent = line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
    return indent + key + (tight ? "=" : " = ") + value_;
  }

  std::string after_last(const toml::table& table, bool is_root, const std::string& rest) const {
    const std::string eol = line_end_of(text_);
    const std::vector<Own> keys = own_keys(table);
    std::string result = text_;
    if (!keys.empty()) {
      return result.insert(keys.back().end, eol + line_like(keys.back(), rest));
    }
    const std::string line = rest + " = " + value_;
    if (is_root) {
      return result.insert(text_.starts_with("\xef\xbb\xbf") ? 3 : 0, line + eol);
    }
    return result.insert(line_end(text_, positions_.byte(table.source().begin)), eol + line);
  }

  const std::string& text_;
  const std::string& name_;
  std::string path_;
  std::string value_;
  toml::table root_;
  Positions positions_;
  std::vector<Segment> segments_;
};

}  // namespace

std::vector<Scalar> toml_scalars(const std::string& text, const std::string& name) {
  Collector collector(text);
  collector.visit(parse(text, name), "");
  return collector.take();
}

std::string toml_replacement(const std::string& text, const Scalar& old, std::string_view value) {
  const bool literal = is_toml_literal(value);
  if (literal && !keeps_quotes(old, literal)) {
    return std::string(value);
  }
  return written_toml(value, old.quoted ? text[old.begin] : '"');
}

std::string toml_inserted(const std::string& text, const std::string& name, std::string_view path,
                          std::string_view value) {
  return TomlInserter(text, name, path, value).run();
}

}  // namespace unidle::knobs::detail
