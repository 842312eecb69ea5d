// Reads JSON with comments and trailing commas. The available libraries report no positions.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "unidle/base/error.h"
#include "unidle/knobs/detail/document.h"
#include "unidle/knobs/detail/emit.h"
#include "unidle/knobs/detail/insert.h"
#include "unidle/knobs/detail/syntax.h"

namespace unidle::knobs::detail {

/// Builds the same tree as for YAML, from flow collections.
class JsonReader {
 public:
  JsonReader(const std::string& text, const std::string& name) : text_(text), name_(name) {
    document_.name_ = name;
    at_ = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  }

  Document run() {
    skip_blank();
    document_.roots_.push_back(value(0));
    skip_blank();
    if (at_ < text_.size()) {
      fail("more than one value");
    }
    return std::move(document_);
  }

 private:
  static constexpr int kDeepest = 200;

  [[noreturn]] void fail(const std::string& why) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size()));
    const auto line = 1 + std::count(text_.begin(), end, '\n');
    throw Error(ErrorCode::kInput, fmt::format("{}:{}", name_, line), "is not valid JSON: " + why);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  /// Skips blanks and comments.
  void skip_blank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        line_ += c == '\n';
        ++at_;
      } else if (text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.compare(at_, 2, "/*") == 0) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string::npos) {
          fail("a comment is not closed");
        }
        for (; at_ < end + 2; ++at_) {
          line_ += text_[at_] == '\n';
        }
      } else {
        return;
      }
    }
  }

  Node node(Node::Kind kind) const {
    Node node;
    node.kind = kind;
    node.begin = at_;
    node.line = line_;
    const std::size_t newline = at_ == 0 ? std::string::npos : text_.rfind('\n', at_ - 1);
    node.column = static_cast<int>(newline == std::string::npos ? at_ : at_ - newline - 1);
    return node;
  }

  int add(Node node) {
    document_.nodes_.push_back(std::move(node));
    return static_cast<int>(document_.nodes_.size()) - 1;
  }

  int value(int depth) {
    if (depth > kDeepest) {
      fail("too many levels");
    }
    switch (peek()) {
      case '{': return collection(Node::Kind::kMap, '}', depth);
      case '[': return collection(Node::Kind::kSequence, ']', depth);
      case '"': return string();
      default: return literal();
    }
  }

  int collection(Node::Kind kind, char close, int depth) {
    const int index = add(node(kind));
    std::vector<Entry> entries;
    std::size_t content_end = ++at_;
    for (skip_blank(); peek() != close; skip_blank()) {
      Entry entry;
      if (kind == Node::Kind::kMap) {
        if (peek() != '"') {
          fail("expected a key in quotes");
        }
        entry.key = string();
        skip_blank();
        if (peek() != ':') {
          fail("expected a colon behind the key");
        }
        ++at_;
        skip_blank();
      }
      entry.value = value(depth + 1);
      entries.push_back(entry);
      content_end = at_;
      skip_blank();
      if (peek() == ',') {
        content_end = ++at_;
      } else if (peek() != close) {
        fail(fmt::format("expected a comma or {}", close));
      }
    }
    Node& made = document_.nodes_[static_cast<std::size_t>(index)];
    made.flow = true;
    made.entries = std::move(entries);
    made.content_end = content_end;
    made.end = ++at_;
    return index;
  }

  int string() {
    Node made = node(Node::Kind::kScalar);
    made.quoted = made.editable = true;
    for (++at_; peek() != '"';) {
      const char c = peek();
      if (at_ >= text_.size() || c == '\n') {
        fail("a string is not closed");
      }
      if (c == '\\') {
        escape(made.value);
      } else {
        made.value += c;
        ++at_;
      }
    }
    made.end = ++at_;
    return add(std::move(made));
  }

  void escape(std::string& value) {
    static constexpr std::string_view kShort = "\"\\/bfnrt";
    static constexpr std::string_view kMeaning = "\"\\/\b\f\n\r\t";
    ++at_;
    const std::size_t known = at_ < text_.size() ? kShort.find(text_[at_]) : std::string_view::npos;
    if (known != std::string_view::npos) {
      value += kMeaning[known];
      ++at_;
      return;
    }
    if (peek() != 'u') {
      fail("unknown escape in a string");
    }
    ++at_;
    unsigned code = hex4();
    if (code >= 0xd800 && code < 0xdc00 && text_.compare(at_, 2, "\\u") == 0) {
      at_ += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + ((hex4() - 0xdc00) & 0x3ff);
    }
    append_utf8(code, value);
  }

  unsigned hex4() {
    unsigned code = 0;
    const char* begin = text_.data() + std::min(at_, text_.size());
    const char* end = text_.data() + std::min(at_ + 4, text_.size());
    const auto [stop, error] = std::from_chars(begin, end, code, 16);
    if (error != std::errc() || stop - begin != 4) {
      fail("expected four hexadecimal digits");
    }
    at_ += 4;
    return code;
  }

  static void append_utf8(unsigned code, std::string& value) {
    if (code < 0x80) {
      value += static_cast<char>(code);
      return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static constexpr unsigned kLead[] = {0, 0xc0, 0xe0, 0xf0};
    value += static_cast<char>(kLead[more] | (code >> (6 * more)));
    for (int i = more - 1; i >= 0; --i) {
      value += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3f));
    }
  }

  int literal() {
    Node made = node(Node::Kind::kScalar);
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n,:{}[]\"/", at_), text_.size());
    made.value = text_.substr(at_, end - at_);
    const bool special = made.value == "NaN" || made.value == "Infinity" || made.value == "-Infinity";
    if (!is_json_literal(made.value) && !special) {
      fail(made.value.empty() ? "expected a value" : fmt::format("'{}' is not a value", made.value));
    }
    made.editable = true;
    made.end = at_ = end;
    return add(std::move(made));
  }

  const std::string& text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int line_ = 1;
  Document document_;
};

std::vector<Scalar> json_scalars(const std::string& text, const std::string& name) {
  return JsonReader(text, name).run().scalars();
}

std::string json_replacement(const std::string&, const Scalar& old, std::string_view value) {
  const bool literal = is_json_literal(value);
  return written(value, literal && !keeps_quotes(old, literal) ? '\0' : '"', true);
}

std::string json_inserted(const std::string& text, const std::string& name, std::string_view path,
                          std::string_view value) {
  const Document document = JsonReader(text, name).run();
  if (document.node(document.roots().front()).kind != Node::Kind::kMap) {
    throw Error(ErrorCode::kInput, fmt::format("{}: {}", name, path), "the file is not a mapping of keys to values");
  }
  return inserted(text, document, name, path, value, true);
}

}  // namespace unidle::knobs::detail
