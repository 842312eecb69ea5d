#include "unidle/knobs/python_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"

namespace unidle::knobs {

namespace {

/// Whether a Python name may start with this character.
bool begins_name(char c) { return is_letter(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80; }

class Tokenizer {
 public:
  Tokenizer(const std::string& text, const std::string& name) : text_(text), name_(name) {
    at_ = line_begin_ = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  }

  std::vector<PythonToken> run() {
    while (at_ < text_.size()) {
      step();
    }
    if (depth_ > 0) {
      fail("a bracket is not closed");
    }
    push(PythonToken::Kind::kNewline, at_);
    push(PythonToken::Kind::kEnd, at_);
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  [[noreturn]] void fail(const char* why) const {
    throw Error(ErrorCode::kInput, fmt::format("{}:{}", name_, line_), std::string("is not valid Python: ") + why);
  }

  void push(PythonToken::Kind kind, std::size_t begin) {
    PythonToken token{kind, begin, at_, line_, 0, false};
    const bool first = tokens_.empty() || tokens_.back().kind == PythonToken::Kind::kNewline;
    if (kind == PythonToken::Kind::kNewline && first) {
      return;  // an empty line
    }
    token.indent = first ? begin - std::min(begin, line_begin_) : 0;
    tokens_.push_back(token);
  }

  void step() {
    const char c = peek();
    if (c == '\n') {
      if (depth_ == 0) {
        push(PythonToken::Kind::kNewline, at_);
      }
      ++at_;
      ++line_;
      line_begin_ = at_;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 2 : 3;
      ++line_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at_;
    } else {
      token();
    }
  }

  void token() {
    const std::size_t begin = at_;
    const char c = peek();
    if (begins_name(c)) {
      while (begins_name(peek()) || is_digit(peek())) {
        ++at_;
      }
      const bool prefix = at_ - begin <= 2 && (peek() == '"' || peek() == '\'') && is_prefix(begin);
      prefix ? string(begin) : push(PythonToken::Kind::kName, begin);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number(begin);
    } else if (c == '"' || c == '\'') {
      string(begin);
    } else {
      ++at_;
      depth_ += c == '(' || c == '[' || c == '{';
      depth_ -= depth_ > 0 && (c == ')' || c == ']' || c == '}');
      push(PythonToken::Kind::kOperator, begin);
    }
  }

  bool is_prefix(std::size_t begin) const {
    const std::string_view prefix(text_.data() + begin, at_ - begin);
    return prefix.find_first_not_of("rRbBfFuU") == std::string_view::npos;
  }

  void number(std::size_t begin) {
    while (begins_name(peek()) || is_digit(peek()) || peek() == '.' ||
           ((peek() == '+' || peek() == '-') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') &&
            text_.compare(begin, 2, "0x") != 0)) {
      ++at_;
    }
    push(PythonToken::Kind::kNumber, begin);
  }

  void string(std::size_t begin) {
    const std::string_view prefix(text_.data() + begin, at_ - begin);
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    const std::string closing(triple ? 3 : 1, quote);
    const int first_line = line_;
    const std::size_t line_start = line_begin_;
    at_ += closing.size();
    while (text_.compare(at_, closing.size(), closing) != 0) {
      if (at_ >= text_.size() || (!triple && peek() == '\n')) {
        fail("a string is not closed");
      }
      at_ += peek() == '\\' && at_ + 1 < text_.size() ? 2 : 1;
      if (text_[at_ - 1] == '\n') {
        ++line_;
        line_begin_ = at_;
      }
    }
    at_ += closing.size();
    const int last_line = std::exchange(line_, first_line);
    const std::size_t last_start = std::exchange(line_begin_, line_start);
    push(PythonToken::Kind::kString, begin);
    tokens_.back().simple = !triple && last_line == first_line && prefix.find_first_of("bBfF") == prefix.npos;
    line_ = last_line;
    line_begin_ = last_start;
  }

  const std::string& text_;
  const std::string& name_;
  std::vector<PythonToken> tokens_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  int line_ = 1;
  int depth_ = 0;
};

}  // namespace

std::vector<PythonToken> tokenize_python(const std::string& text, const std::string& name) {
  return Tokenizer(text, name).run();
}

std::string python_string_value(std::string_view source) {
  const std::size_t open = source.find_first_of("\"'");
  const bool raw = source.substr(0, open).find_first_of("rR") != std::string_view::npos;
  std::string value;
  for (std::size_t i = open + 1; i + 1 < source.size(); ++i) {
    if (source[i] != '\\' || raw || i + 2 >= source.size()) {
      value += source[i];
      continue;
    }
    static constexpr std::string_view kShort = "nrt\\'\"";
    static constexpr std::string_view kMeaning = "\n\r\t\\'\"";
    const std::size_t known = kShort.find(source[++i]);
    value += known == std::string_view::npos ? std::string("\\") + source[i] : std::string(1, kMeaning[known]);
  }
  return value;
}

}  // namespace unidle::knobs
