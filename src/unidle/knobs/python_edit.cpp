#include "unidle/knobs/python_edit.h"

#include <algorithm>
#include <utility>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"

namespace unidle::knobs {

namespace {

bool opens(std::string_view word) { return word == "(" || word == "[" || word == "{"; }
bool closes(std::string_view word) { return word == ")" || word == "]" || word == "}"; }

}  // namespace

std::optional<PythonSource> PythonSource::read(std::string text) {
  try {
    std::vector<PythonToken> tokens = tokenize_python(text, "");
    return PythonSource(std::move(text), std::move(tokens));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string_view PythonSource::word(std::size_t token) const {
  if (token >= tokens_.size()) {
    return {};
  }
  return std::string_view(text_).substr(tokens_[token].begin, tokens_[token].end - tokens_[token].begin);
}

bool PythonSource::calls(std::size_t token, const std::vector<std::string_view>& names) const {
  const bool defines = token > 0 && (word(token - 1) == "def" || word(token - 1) == "class");
  return tokens_[token].kind == PythonToken::Kind::kName && word(token + 1) == "(" && !defines &&
         std::find(names.begin(), names.end(), word(token)) != names.end();
}

std::size_t PythonSource::count_calls(const std::vector<std::string_view>& names) const {
  std::size_t count = 0;
  for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
    count += calls(i, names) ? 1 : 0;
  }
  return count;
}

std::optional<PythonSource::Call> PythonSource::find(const std::vector<std::string_view>& names,
                                                     std::optional<int> line) const {
  std::optional<Call> found;
  for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
    if ((line && tokens_[i].line != *line) || !calls(i, names)) {
      continue;
    }
    if (found) {
      return std::nullopt;
    }
    found = i + 1;
  }
  return found;
}

std::vector<PythonSource::Argument> PythonSource::arguments_of(Call call) const {
  std::vector<Argument> found;
  std::size_t begin = call + 1;
  int depth = 1;
  for (std::size_t i = begin; i < tokens_.size() && depth > 0; ++i) {
    if (tokens_[i].kind != PythonToken::Kind::kOperator) {
      continue;
    }
    depth += opens(word(i)) - closes(word(i));
    const bool ends = depth == 0 || (depth == 1 && word(i) == ",");
    if (ends && i > begin) {
      found.push_back({begin, i - 1});
    }
    begin = ends ? i + 1 : begin;
  }
  return found;
}

bool PythonSource::is_keyword(const Argument& argument) const {
  const std::size_t equals = argument.first + 1;
  return tokens_[argument.first].kind == PythonToken::Kind::kName && equals < argument.last && word(equals) == "=" &&
         word(equals + 1) != "=";
}

PythonSource::Given PythonSource::value_given(std::size_t first, std::size_t last) const {
  const PythonToken::Kind kind = tokens_[first].kind;
  const std::string_view text = word(first);
  const bool constant = kind == PythonToken::Kind::kNumber || kind == PythonToken::Kind::kString || text == "True" ||
                        text == "False" || text == "None";
  return first == last && constant ? Given::kLiteral : Given::kExpression;
}

PythonSource::Given PythonSource::given(Call call, std::string_view name) const {
  Given found = Given::kNot;
  for (const Argument& each : arguments_of(call)) {
    if (is_keyword(each) && word(each.first) == name) {
      return value_given(each.first + 2, each.last);
    }
    found = unpacks(each) ? Given::kUnknown : found;
  }
  return found;
}

PythonSource::Given PythonSource::given_second(Call call, std::string_view name) const {
  const std::vector<Argument> arguments = arguments_of(call);
  const bool by_place = arguments.size() > 1 && !unpacks(arguments[0]) && !unpacks(arguments[1]) &&
                        !is_keyword(arguments[0]) && !is_keyword(arguments[1]);
  return by_place ? value_given(arguments[1].first, arguments[1].last) : given(call, name);
}

std::optional<std::string> PythonSource::value_of(Call call, std::string_view name) const {
  for (const Argument& each : arguments_of(call)) {
    if (is_keyword(each) && word(each.first) == name) {
      const std::size_t begin = tokens_[each.first + 2].begin;
      return text_.substr(begin, tokens_[each.last].end - begin);
    }
  }
  return std::nullopt;
}

std::size_t PythonSource::positional(Call call) const {
  const std::vector<Argument> arguments = arguments_of(call);
  return static_cast<std::size_t>(std::count_if(
      arguments.begin(), arguments.end(), [&](const Argument& each) { return !is_keyword(each) && !unpacks(each); }));
}

std::string PythonSource::replaced(std::size_t first, std::size_t last, std::string_view value) const {
  const std::size_t begin = tokens_[first].begin;
  return std::string(text_).replace(begin, tokens_[last].end - begin, value);
}

std::optional<std::string> PythonSource::with_argument(Call call, std::string_view name, std::string_view value) const {
  const std::vector<Argument> arguments = arguments_of(call);
  for (const Argument& each : arguments) {
    if (unpacks(each) && word(each.first + 1) == "*") {
      return std::nullopt;
    }
    if (is_keyword(each) && word(each.first) == name) {
      return replaced(each.first + 2, each.last, value);
    }
  }
  const std::string added = std::string(name) + "=" + std::string(value);
  std::string text = text_;
  return arguments.empty() ? text.insert(tokens_[call].end, added)
                           : text.insert(tokens_[arguments.back().last].end, ", " + added);
}

std::optional<std::string> PythonSource::with_second_argument(Call call, std::string_view name,
                                                              std::string_view value) const {
  const std::vector<Argument> arguments = arguments_of(call);
  for (std::size_t i = 0; i < std::min<std::size_t>(2, arguments.size()); ++i) {
    if (unpacks(arguments[i])) {
      return std::nullopt;  // the number of values is unknown
    }
  }
  if (arguments.size() > 1 && !is_keyword(arguments[1])) {
    return replaced(arguments[1].first, arguments[1].last, value);
  }
  return with_argument(call, name, value);
}

std::optional<std::string> PythonSource::with_number(int line, std::string_view value) const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view text = word(i);
    if (tokens_[i].line != line || tokens_[i].kind != PythonToken::Kind::kNumber ||
        !std::all_of(text.begin(), text.end(), is_digit)) {
      continue;
    }
    if (found) {
      return std::nullopt;
    }
    found = i;
  }
  return found ? std::optional(replaced(*found, *found, value)) : std::nullopt;
}

bool PythonSource::begins_statement(std::size_t token) const {
  return token == 0 || tokens_[token - 1].kind == PythonToken::Kind::kNewline;
}

std::size_t PythonSource::next_statement(std::size_t token) const {
  do {
    ++token;
  } while (token < tokens_.size() && !begins_statement(token));
  return token;
}

std::size_t PythonSource::line_begin(std::size_t token) const {
  const std::size_t newline = text_.rfind('\n', tokens_[token].begin);
  return newline == std::string::npos ? 0 : newline + 1;
}

std::optional<std::size_t> PythonSource::place_of_import() const {
  std::optional<std::size_t> place;
  for (std::size_t i = 0; i < tokens_.size(); i = next_statement(i)) {
    if (tokens_[i].indent > 0 || (word(i) != "import" && word(i) != "from") || word(i + 1) == "__future__") {
      continue;
    }
    if (word(i) == "import" && word(i + 1) == "unidle" && tokens_[i + 2].kind == PythonToken::Kind::kNewline) {
      return text_.size();
    }
    place = place ? place : std::optional(line_begin(i));
  }
  return place;
}

std::optional<std::string> PythonSource::with_decorator(int line, std::string_view decorator) const {
  std::size_t token = 0;
  while (token < tokens_.size() && !(begins_statement(token) && tokens_[token].line == line)) {
    ++token;
  }
  while (word(token) == "@" && word(token + 1) != "unidle") {
    token = next_statement(token);
  }
  const auto import_at = place_of_import();
  if (word(token) != "def" || !import_at || (*import_at < text_.size() && *import_at > tokens_[token].begin)) {
    return std::nullopt;
  }
  const std::string ending = text_.find("\r\n") == std::string::npos ? "\n" : "\r\n";
  const std::size_t begin = line_begin(token);
  const std::string indent = text_.substr(begin, tokens_[token].begin - begin);
  std::string text = text_;
  text.insert(begin, indent + std::string(decorator) + ending);
  return *import_at < text_.size() ? text.insert(*import_at, "import unidle" + ending) : text;
}

}  // namespace unidle::knobs
