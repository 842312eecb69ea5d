#include "unidle/knobs/detail/scan.h"

#include <algorithm>
#include <vector>

#include "unidle/base/characters.h"

namespace unidle::knobs::detail {

namespace {

bool is_space(char c) { return is_blank(c) || c == '\r' || c == '\n'; }

/// A quote opens a quoted scalar only where a value or key may begin; elsewhere it is part of a plain scalar.
bool opens_token(std::string_view text, std::size_t at, std::size_t floor, std::string_view openers) {
  if (at <= floor) {
    return false;
  }
  std::size_t before = at - 1;
  while (before > floor && is_space(text[before])) {
    --before;
  }
  return openers.find(text[before]) != std::string_view::npos;
}

std::size_t indent_of(std::string_view text, std::size_t begin) {
  const std::size_t first = text.find_first_not_of(' ', begin);
  return (first == std::string_view::npos ? text.size() : first) - begin;
}

}  // namespace

std::size_t line_begin(std::string_view text, std::size_t at) {
  if (at == 0) {
    return 0;
  }
  const std::size_t previous = text.rfind('\n', at - 1);
  return previous == std::string_view::npos ? 0 : previous + 1;
}

std::size_t line_end(std::string_view text, std::size_t at) {
  std::size_t end = text.find('\n', at);
  if (end == std::string_view::npos) {
    return text.size();
  }
  if (end > at && text[end - 1] == '\r') {
    --end;
  }
  return end;
}

std::size_t end_of_quoted(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '\'' && i + 1 < text.size() && text[i + 1] == '\'') {
        ++i;
      } else {
        return i + 1;
      }
    }
  }
  return text.size();
}

std::size_t end_of_block_scalar(std::string_view text, std::size_t begin) {
  std::size_t end = line_end(text, begin);
  std::size_t line = text.find('\n', begin);
  std::size_t indent = 0;
  while (line != std::string_view::npos && line + 1 < text.size()) {
    const std::size_t start = line + 1;
    const std::size_t stop = line_end(text, start);
    const bool blank = indent_of(text, start) + start >= stop;
    if (!blank) {
      if (indent == 0) {
        indent = indent_of(text, start);
      }
      if (indent == 0 || indent_of(text, start) < indent) {
        break;
      }
      end = stop;
    }
    line = text.find('\n', start);
  }
  return end;
}

FlowEnd end_of_flow(std::string_view text, std::size_t begin, std::string_view openers) {
  int depth = 0;
  std::size_t content = begin;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#' && i > begin && is_space(text[i - 1])) {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if ((c == '"' || c == '\'') && opens_token(text, i, begin, openers)) {
      i = end_of_quoted(text, i) - 1;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) {
        return {i, content};
      }
    }
    if (!is_space(c)) {
      content = i + 1;
    }
  }
  return {text.size(), content};
}

std::size_t skip_properties(std::string_view text, std::size_t begin) {
  std::size_t at = begin;
  while (at < text.size() && (text[at] == '&' || text[at] == '!')) {
    while (at < text.size() && !is_space(text[at])) {
      ++at;
    }
    while (at < text.size() && is_space(text[at])) {
      ++at;
    }
  }
  return at;
}

}  // namespace unidle::knobs::detail
