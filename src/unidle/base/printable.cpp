#include "unidle/base/printable.h"

#include <algorithm>
#include <array>
#include <utility>

#include "unidle/base/utf8.h"

namespace unidle {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// Length of the escape sequence (ECMA-48) at the front.
std::size_t escape_bytes(std::string_view text) {
  const auto within = [&](std::size_t at, char first, char last) {
    return at < text.size() && text[at] >= first && text[at] <= last;
  };
  std::size_t at = 1;
  if (within(at, '[', '[')) {
    for (++at; within(at, ' ', '?'); ++at) {
    }
    return within(at, '@', '~') ? at + 1 : at;
  }
  if (at < text.size() && std::string_view("]PX^_").find(text[at]) != std::string_view::npos) {
    const std::size_t end = text.find_first_of("\a\x1b\n", at);  // ends at a bell or ESC \, and never spans lines
    if (end != std::string_view::npos && text[end] == '\a') {
      return end + 1;
    }
    return end != std::string_view::npos && text.substr(end).starts_with("\x1b\\") ? end + 2 : 1;
  }
  for (; within(at, ' ', '/'); ++at) {
  }
  return at > 1 && within(at, '0', '~') ? at + 1 : 1;
}

bool stays(std::string_view rest) { return rest[0] == '\n' || rest[0] == '\t' || (rest.starts_with("\r\n")); }

}  // namespace

bool is_interpreted(std::uint32_t code_point) {
  static constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 10> kRanges = {{{0x00, 0x1F},
                                                                                       {0x7F, 0x9F},
                                                                                       {0x061C, 0x061C},
                                                                                       {0x200E, 0x200F},
                                                                                       {0x2028, 0x202E},
                                                                                       {0x2066, 0x206F},
                                                                                       {0xFEFF, 0xFEFF},
                                                                                       {0xFFF9, 0xFFFB},
                                                                                       {0xFFFE, 0xFFFF},
                                                                                       {0xE0000, 0xE007F}}};
  return std::any_of(kRanges.begin(), kRanges.end(),
                     [&](const auto& range) { return code_point >= range.first && code_point <= range.second; });
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    const std::size_t bytes = point.bytes == 0 ? 1 : point.bytes;
    const bool shown = point.bytes != 0 && (!is_interpreted(point.value) || stays(text));
    out += shown ? text.substr(0, bytes) : kReplacement;
    text.remove_prefix(bytes);
  }
  return out;
}

std::string printable_line(std::string_view text) {
  std::string line = printable(text);
  std::replace_if(line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  return line;
}

std::string_view without_escapes(std::string_view text, std::string& scratch) {
  std::size_t escape = text.find('\x1b');
  if (escape == std::string_view::npos) {
    return text;
  }
  scratch.clear();
  for (; escape != std::string_view::npos; escape = text.find('\x1b')) {
    scratch += text.substr(0, escape);
    text.remove_prefix(escape);
    text.remove_prefix(escape_bytes(text));
  }
  scratch += text;
  return scratch;
}

std::string without_escapes(std::string_view text) {
  std::string scratch;
  return std::string(without_escapes(text, scratch));
}

}  // namespace unidle
