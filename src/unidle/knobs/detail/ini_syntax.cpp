// INI files as Python's configparser reads them, and comments behind values as most others do.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"
#include "unidle/knobs/detail/emit.h"
#include "unidle/knobs/detail/insert.h"
#include "unidle/knobs/detail/scan.h"
#include "unidle/knobs/detail/syntax.h"

namespace unidle::knobs::detail {

namespace {

/// Where the first line begins: behind a byte order mark.
std::size_t content_begin(std::string_view text) { return text.starts_with("\xef\xbb\xbf") ? 3 : 0; }

/// Behind the value that begins at `begin`: a comment needs a blank before it, since # and ; are letters of values too.
std::size_t end_of_value(std::string_view text, std::size_t begin, std::size_t stop) {
  if (begin < stop && (text[begin] == '"' || text[begin] == '\'')) {
    const std::size_t close = text.find(text[begin], begin + 1);
    if (close < stop) {
      const std::size_t next = text.find_first_not_of(" \t", close + 1);
      if (next >= stop || text[next] == '#' || text[next] == ';') {
        return close + 1;
      }
    }
  }
  std::size_t end = stop;
  for (std::size_t i = begin + 1; i < stop; ++i) {
    if ((text[i] == '#' || text[i] == ';') && is_blank(text[i - 1])) {
      end = i;
      break;
    }
  }
  while (end > begin && is_blank(text[end - 1])) {
    --end;
  }
  return end;
}

class IniReader {
 public:
  IniReader(const std::string& text, const std::string& name) : text_(text), name_(name) {}

  struct Section {
    std::string name;
    std::size_t begin;  // of its header's line
  };

  void run() {
    std::size_t at = content_begin(text_);
    for (int line = 1; at < text_.size(); ++line) {
      std::size_t stop = line_end(text_, at);
      stop -= stop == text_.size() && text_.ends_with('\r') ? 1 : 0;
      read_line(at, stop, line);
      const std::size_t newline = text_.find('\n', stop);
      at = newline == std::string::npos ? text_.size() : newline + 1;
    }
  }

  using Owner = std::optional<std::string>;  // a section; none above the first, which is not the one without a name

  std::vector<Scalar> scalars;
  std::vector<Owner> owners;  // of each scalar: keys may hold dots
  std::vector<Section> sections;

 private:
  void read_line(std::size_t begin, std::size_t stop, int line) {
    const std::size_t first = std::min(text_.find_first_not_of(" \t", begin), stop);
    if (first >= stop || text_[first] == '#' || text_[first] == ';') {
      return;
    }
    const std::size_t indent = first - begin;
    if (!scalars.empty() && open_ && indent > key_indent_) {
      scalars.back().editable = false;  // the value goes on in this line
      scalars.back().value += "\n" + text_.substr(first, stop - first);
      return;
    }
    if (text_[first] == '[') {
      const std::size_t close = text_.find(']', first);
      if (close >= stop) {
        fail(line, "a section's name is not closed");
      }
      sections.push_back({text_.substr(first + 1, close - first - 1), begin});
      open_ = false;
      return;
    }
    read_key(first, stop, line);
    key_indent_ = indent;
    open_ = true;
  }

  void read_key(std::size_t first, std::size_t stop, int line) {
    const std::size_t delimiter = text_.find_first_of("=:", first);
    if (delimiter >= stop || delimiter == first) {
      fail(line, "expected key = value");
    }
    std::size_t key_end = delimiter;
    while (is_blank(text_[key_end - 1])) {
      --key_end;
    }
    const std::string key = text_.substr(first, key_end - first);
    Scalar scalar;
    scalar.path = sections.empty() ? key : sections.back().name + "." + key;
    scalar.line = line;
    scalar.begin = std::min(text_.find_first_not_of(" \t", delimiter + 1), stop);
    if (scalar.begin >= stop) {
      scalar.begin = scalar.end = delimiter + 1;
    } else {
      scalar.end = end_of_value(text_, scalar.begin, stop);
      scalar.value = text_.substr(scalar.begin, scalar.end - scalar.begin);
    }
    const std::string& value = scalar.value;
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front()) {
      scalar.quoted = true;
      scalar.value = value.substr(1, value.size() - 2);
    }
    scalars.push_back(std::move(scalar));
    owners.push_back(sections.empty() ? Owner() : sections.back().name);
  }

  [[noreturn]] void fail(int line, const char* why) const {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}", name_, line), std::string("is not valid INI: ") + why);
  }

  const std::string& text_;
  const std::string& name_;
  std::size_t key_indent_ = 0;
  bool open_ = false;  // a key has been read in this section, so that indented lines belong to it
};

/// What stands between key and value in the line of `like`.
std::string delimiter_like(const std::string& text, const Scalar& like) {
  std::size_t begin = like.begin;
  while (begin > 0 && (is_blank(text[begin - 1]) || text[begin - 1] == '=' || text[begin - 1] == ':')) {
    --begin;
  }
  return like.begin < like.end ? text.substr(begin, like.begin - begin) : " = ";
}

/// Whether a line `name = value` or `[name]` is read back as that name.
bool is_key(std::string_view name) {
  return !name.empty() && name.find_first_of("=:\r\n") == std::string_view::npos && !is_blank(name.front()) &&
         !is_blank(name.back()) && name.find_first_of("[#;") != 0;
}
bool is_section(std::string_view name) { return name.find_first_of("]\r\n") == std::string_view::npos; }

/// The blanks that the line around `at` begins with.
std::string indent_of_line(const std::string& text, std::size_t at) {
  const std::size_t begin = std::max(line_begin(text, at), content_begin(text));
  const std::size_t word = std::min(text.find_first_not_of(" \t", begin), text.size());
  return text.substr(begin, word - begin);
}

/// Of the first line behind `at` that is no comment. A new line in front of it needs as many: what is indented further
/// is read as the rest of a value.
std::string indent_behind(const std::string& text, std::size_t at) {
  std::size_t word = text.find_first_not_of(" \t\r\n", at);
  while (word != std::string::npos && (text[word] == '#' || text[word] == ';')) {
    word = text.find_first_not_of(" \t\r\n", line_end(text, word));
  }
  return word == std::string::npos ? "" : indent_of_line(text, word);
}

}  // namespace

std::vector<Scalar> ini_scalars(const std::string& text, const std::string& name) {
  IniReader reader(text, name);
  reader.run();
  return std::move(reader.scalars);
}

std::string ini_replacement(const std::string& text, const Scalar& old, std::string_view value) {
  const std::string lead = old.begin == old.end ? " " : "";
  const char quote = keeps_quotes(old, is_json_literal(value)) ? text[old.begin] : '\0';
  if (quote != 0 && value.find(quote) == std::string_view::npos) {  // nothing escapes a quote
    return lead + fmt::format("{}{}{}", quote, value, quote);
  }
  // Behind quotes a comment needs no blank before it.
  const bool comment = old.quoted && old.end < text.size() && (text[old.end] == '#' || text[old.end] == ';');
  return lead + std::string(value) + (comment ? " " : "");
}

std::string ini_inserted(const std::string& text, const std::string& name, std::string_view path,
                         std::string_view value) {
  IniReader reader(text, name);
  reader.run();
  const std::string eol = line_end_of(text);
  const std::size_t dot = path.rfind('.');
  const IniReader::Owner section =
      dot == std::string_view::npos ? IniReader::Owner() : std::string(path.substr(0, dot));
  const std::string key(dot == std::string_view::npos ? path : path.substr(dot + 1));
  if (!is_key(key) || (section && !is_section(*section))) {
    throw Error(ErrorCode::kInput, fmt::format("{}: {}", name, path), "is not a key that INI can have",
                "a section's name has no ], a key has neither = nor :");
  }
  std::string result = text;
  const Scalar* last = nullptr;
  for (std::size_t i = 0; i < reader.scalars.size(); ++i) {
    last = reader.owners[i] == section ? &reader.scalars[i] : last;
  }
  if (last != nullptr) {
    if (!last->editable) {
      throw Error(ErrorCode::kInput, fmt::format("{}:{}: {}", name, last->line, path),
                  "cannot be added behind a value of several lines");
    }
    const std::string line = indent_of_line(text, last->begin) + key + delimiter_like(text, *last) + std::string(value);
    return result.insert(line_end(text, last->end), eol + line);
  }
  const std::string line = fmt::format("{} = {}", key, value);
  for (const IniReader::Section& existing : reader.sections) {
    if (existing.name == section) {
      const std::size_t end = line_end(text, existing.begin);
      return result.insert(end, eol + indent_behind(text, end) + line);
    }
  }
  if (!section) {
    const std::size_t begin = content_begin(text);
    return result.insert(begin, indent_behind(text, begin) + line + eol);
  }
  result += result.empty() || result.ends_with('\n') ? "" : eol;
  return result + (result.empty() ? "" : eol) + fmt::format("[{}]{}{}{}", *section, eol, line, eol);
}

}  // namespace unidle::knobs::detail
