#include "unidle/knobs/detail/python_reader.h"

#include <algorithm>
#include <optional>

#include "unidle/knobs/python_tokens.h"

namespace unidle::knobs::detail {

namespace {

using Kind = PythonToken::Kind;

class PythonReader {
 public:
  PythonReader(const std::string& text, const std::string& name) : text_(text), tokens_(tokenize_python(text, name)) {}

  PythonFile run() {
    while (token().kind != Kind::kEnd) {
      statement();
    }
    return std::move(file_);
  }

 private:
  static constexpr int kDeepest = 100;

  struct Class {
    std::size_t indent;  // of the class statement
    std::string path;
    std::size_t body = 0;  // indentation of its body; 0 until it is known
  };

  const PythonToken& token(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  std::string source(const PythonToken& token) const { return text_.substr(token.begin, token.end - token.begin); }
  bool is(std::string_view word, std::size_t ahead = 0) const {
    const PythonToken& here = token(ahead);
    return text_.compare(here.begin, here.end - here.begin, word) == 0 && here.begin < here.end;
  }

  void skip_line() {
    while (token().kind != Kind::kNewline && token().kind != Kind::kEnd) {
      ++at_;
    }
    at_ += token().kind == Kind::kNewline;
  }

  void statement() {
    const std::size_t indent = token().indent;
    while (!classes_.empty() && indent <= classes_.back().indent) {
      classes_.pop_back();
    }
    if (is("class") && token(1).kind == Kind::kName && (indent == 0 || at_level(indent))) {
      classes_.push_back({indent, prefix() + source(token(1))});
    } else if (at_level(indent)) {
      assignment();
    }
    arguments();
    skip_line();
  }

  /// Whether the line is in the body of the module or of a class, not of a function or a condition.
  bool at_level(std::size_t indent) {
    if (classes_.empty()) {
      return indent == 0;
    }
    std::size_t& body = classes_.back().body;
    body = body == 0 ? indent : body;
    return indent == body;
  }

  std::string prefix() const { return classes_.empty() ? "" : classes_.back().path + "."; }

  /// NAME = value, a.b = value, NAME: type = value
  void assignment() {
    const std::size_t start = at_;
    std::string path;
    while (token().kind == Kind::kName) {
      path += source(token());
      ++at_;
      if (!is(".")) {
        break;
      }
      path += ".";
      ++at_;
    }
    std::vector<std::string> choices;
    if (is(":") && !path.empty()) {
      for (int depth = 0; token().kind != Kind::kNewline && (depth > 0 || !is("=")); ++at_) {
        if (is("Literal") && is("[", 1)) {
          choices = literals_in(at_ + 1, matching(at_ + 1));
        }
        depth += is("[") || is("(") || is("{");
        depth -= is("]") || is(")") || is("}");
      }
    }
    if (path.empty() || path.back() == '.' || !is("=") || is("=", 1)) {
      at_ = start;
      return;
    }
    ++at_;
    value(prefix() + path, 0);
    limit_last(prefix() + path, std::move(choices));
    if (classes_.empty()) {
      const PythonToken& last = tokens_[at_ - 1];
      file_.last_assignment_end = last.end;
    }
    at_ = start;
  }

  bool ends_value() const {
    return token().kind == Kind::kNewline || token().kind == Kind::kEnd || is(",") || is(")") || is("]") || is("}");
  }

  void add_scalar(const std::string& path, std::size_t first, bool editable) {
    Scalar scalar;
    scalar.path = path;
    scalar.line = tokens_[first].line;
    scalar.begin = tokens_[first].begin;
    scalar.end = tokens_[at_ - 1].end;
    scalar.value = text_.substr(scalar.begin, scalar.end - scalar.begin);
    scalar.editable = editable;
    if (editable && tokens_[first].kind == Kind::kString) {
      scalar.quoted = true;
      scalar.value = python_string_value(scalar.value);
    }
    file_.scalars.push_back(std::move(scalar));
  }

  /// Skips an expression that is not a literal, up to the end of the value.
  void skip_expression() {
    for (int depth = 0; token().kind != Kind::kNewline && token().kind != Kind::kEnd; ++at_) {
      if (depth == 0 && ends_value()) {
        return;
      }
      depth += is("[") || is("(") || is("{");
      depth -= is("]") || is(")") || is("}");
    }
  }

  void value(const std::string& path, int depth) {
    const std::size_t first = at_;
    if (depth < kDeepest && (group(path, depth) || sequence(path, depth))) {
      return;
    }
    at_ = first;
    const bool sign = is("-") && token(1).kind == Kind::kNumber;
    at_ += sign;
    const bool literal = token().kind == Kind::kNumber || (token().kind == Kind::kString && token().simple) ||
                         is("True") || is("False") || is("None");
    ++at_;
    const bool alone = literal && ends_value();
    at_ = first;
    skip_expression();
    if (at_ > first) {
      add_scalar(path, first, alone);
    }
  }

  /// dict(a=1), Name(a=1), L(Name)(a=1), {'a': 1}. False, with nothing added, for anything else.
  bool group(const std::string& path, int depth) {
    const bool display = is("{");
    if (!display) {
      if (token().kind != Kind::kName) {
        return false;
      }
      while (token().kind == Kind::kName && is(".", 1)) {
        at_ += 2;
      }
      ++at_;
      if (!is("(")) {
        return false;
      }
      if (const std::size_t close = matching(at_);
          close + 1 < tokens_.size() && text_[tokens_[close + 1].begin] == '(') {
        at_ = close + 1;  // the last call has the arguments
      }
    }
    const std::size_t close = matching(at_);
    if (!follows_end(close) || (display && !is_mapping())) {
      return false;
    }
    entries(path, display, close, depth);
    at_ = close + 1;
    return true;
  }

  bool is_mapping() const { return is("}", 1) || (token(1).kind == Kind::kString && token(1).simple && is(":", 2)); }

  std::size_t matching(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i < tokens_.size(); ++i) {
      const char c = tokens_[i].kind == Kind::kOperator ? text_[tokens_[i].begin] : ' ';
      depth += c == '(' || c == '[' || c == '{';
      depth -= c == ')' || c == ']' || c == '}';
      if (depth == 0) {
        return i;
      }
    }
    return tokens_.size() - 1;
  }

  /// Whether the group is the whole value: no attribute and no operator follows.
  bool follows_end(std::size_t close) const {
    if (close + 1 >= tokens_.size()) {
      return false;
    }
    const PythonToken& next = tokens_[close + 1];
    const char c = text_[std::min(next.begin, text_.size() - 1)];
    return next.kind == Kind::kNewline || next.kind == Kind::kEnd || c == ',' || c == ')' || c == ']' || c == '}';
  }

  void entries(const std::string& path, bool display, std::size_t close, int depth) {
    PythonGroup made{path, !display, tokens_[at_].begin, 0, tokens_[close - 1].end, tokens_[close].begin, '"'};
    ++at_;
    while (at_ < close) {
      made.last_begin = token().begin;
      const bool keyword = !display && token().kind == Kind::kName && is("=", 1) && !is("=", 2);
      const bool pair = display && token().kind == Kind::kString && token().simple && is(":", 1);
      if (keyword || pair) {
        const std::string key = keyword ? source(token()) : python_string_value(source(token()));
        made.quote = pair ? text_[token().end - 1] : made.quote;
        at_ += 2;
        value(path + "." + key, depth + 1);
      } else {
        while (at_ < close && !is(",")) {
          at_ = is("(") || is("[") || is("{") ? matching(at_) + 1 : at_ + 1;
        }
      }
      at_ += at_ < close;  // the comma
    }
    file_.groups.push_back(std::move(made));
  }

  bool sequence(const std::string& path, int depth) {
    if (!is("[") && !is("(")) {
      return false;
    }
    const std::size_t close = matching(at_);
    if (!follows_end(close)) {
      return false;
    }
    const std::size_t before = file_.scalars.size();
    ++at_;
    for (int index = 0; at_ < close; ++index) {
      const std::size_t first = at_;
      value(path + "[" + std::to_string(index) + "]", depth + 1);
      if (at_ < close && !is(",")) {  // a comprehension, a generator
        file_.scalars.resize(before);
        return false;
      }
      at_ = std::max(at_, first) + (at_ < close);
    }
    at_ = close + 1;
    return true;
  }

  /// Strings and numbers between two brackets.
  std::vector<std::string> literals_in(std::size_t open, std::size_t close) const {
    std::vector<std::string> found;
    for (std::size_t i = open + 1; i < close; ++i) {
      if (tokens_[i].kind == Kind::kString && tokens_[i].simple) {
        found.push_back(python_string_value(source(tokens_[i])));
      } else if (tokens_[i].kind == Kind::kNumber || tokens_[i].kind == Kind::kName) {
        found.push_back(source(tokens_[i]));
      }
    }
    return found;
  }

  /// The values of choices=[...], or of choices=NAME if NAME is a list in this file; nothing if they are computed.
  std::vector<std::string> choices_at(std::size_t at) const {
    const std::size_t close = matching(at);
    if (close > at && follows_end(close)) {
      return literals_in(at, close);
    }
    std::vector<std::string> found;
    const std::string name = source(tokens_[at]) + "[";
    for (const Scalar& scalar : file_.scalars) {
      if (scalar.path.starts_with(name)) {
        found.push_back(scalar.value);
      }
    }
    return found;
  }

  void limit_last(const std::string& path, std::vector<std::string> choices) {
    if (!file_.scalars.empty() && file_.scalars.back().path == path) {
      file_.scalars.back().choices = std::move(choices);
    }
  }

  /// parser.add_argument("--batch-size", type=int, default=64) is batch_size = 64.
  void arguments() {
    const std::size_t start = at_;
    for (; token().kind != Kind::kNewline && token().kind != Kind::kEnd; ++at_) {
      if (is("add_argument") && is("(", 1)) {
        ++at_;
        one_argument();
      }
    }
    at_ = start;
  }

  void one_argument() {
    const std::size_t close = matching(at_);
    std::string name;
    std::vector<std::string> names;
    std::size_t given = 0;  // position of the default
    std::optional<std::vector<std::string>> choices;
    for (++at_; at_ < close;) {
      if (token().kind == Kind::kString && token().simple) {
        const std::string option = python_string_value(source(token()));
        name = option.starts_with("--") || name.empty() ? option : name;
        names.push_back(option);
      }
      given = is("default") && is("=", 1) ? at_ + 2 : given;
      if (is("choices") && is("=", 1)) {
        choices = choices_at(at_ + 2);
      }
      while (at_ < close && !is(",")) {
        at_ = is("(") || is("[") || is("{") ? matching(at_) + 1 : at_ + 1;
      }
      at_ += at_ < close;
    }
    if (given > 0 && !name.empty()) {
      at_ = given;
      name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
      std::replace(name.begin(), name.end(), '-', '_');
      value(name, 0);
      if (choices && choices->empty() && !file_.scalars.empty()) {
        choices->push_back(file_.scalars.back().value);
      }
      limit_last(name, choices.value_or(std::vector<std::string>{}));
      if (!file_.scalars.empty() && file_.scalars.back().path == name) {
        file_.scalars.back().argument = std::move(names);
      }
    }
    at_ = close;
  }

  const std::string& text_;
  std::vector<PythonToken> tokens_;
  std::size_t at_ = 0;
  std::vector<Class> classes_;
  PythonFile file_;
};

}  // namespace

PythonFile read_python(const std::string& text, const std::string& name) { return PythonReader(text, name).run(); }

}  // namespace unidle::knobs::detail
