#include "unidle/knobs/changed_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "unidle/base/numbers.h"

namespace unidle::knobs {

namespace {

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line.remove_suffix(line.ends_with('\r') ? 1 : 0);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

ChangedLines changed_lines(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> a = split_lines(before);
  const std::vector<std::string_view> b = split_lines(after);
  const auto head = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  const auto most = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())) - head;
  const auto tail = std::min(most, std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
  ChangedLines changed{static_cast<int>(head) + 1, {}, {}};
  changed.before.assign(a.begin() + head, a.end() - tail);
  changed.after.assign(b.begin() + head, b.end() - tail);
  return changed;
}

std::vector<ChangedLines> changes_of_diff(std::string_view diff) {
  std::vector<ChangedLines> changes;
  for (const std::string_view line : split_lines(diff)) {
    const char mark = line.empty() ? '\0' : line.front();
    if (line.starts_with("@@ -")) {
      changes.emplace_back().line =
          std::max(1, parse_number<int>(line.substr(4, line.find_first_of(", ", 4) - 4)).value_or(1));
    } else if (!changes.empty() && (mark == ' ' || mark == '-' || mark == '+')) {
      const std::string text(line.substr(1));
      if (mark != '+') {
        changes.back().before.push_back(text);
      }
      if (mark != '-') {
        changes.back().after.push_back(text);
      }
    }
  }
  return changes;
}

std::optional<std::string> with_lines(std::string_view text, const ChangedLines& change) {
  const auto next = [&](std::size_t begin) { return std::min(text.find('\n', begin), text.size() - 1) + 1; };
  std::size_t begin = 0;
  for (int number = 1; number < change.line && begin < text.size(); ++number) {
    begin = next(begin);
  }
  std::size_t end = begin;
  for (const std::string& each : change.before) {
    if (change.line < 1 || end >= text.size() || line_of(text.substr(end), 1) != each) {
      return std::nullopt;
    }
    end = next(end);
  }
  const std::string_view replaced = text.substr(begin, end - begin);
  const std::string_view line_end = replaced.ends_with("\r\n") ? "\r\n" : "\n";
  std::string edited(text.substr(0, begin));
  for (const std::string& each : change.after) {
    edited.append(each).append(line_end);
  }
  if (!replaced.ends_with('\n') && !change.after.empty()) {  // the last line of a text without an end of it
    edited.erase(edited.size() - line_end.size());
  }
  return edited.append(text.substr(end));
}

std::string excerpt(std::string_view line, std::string_view other) {
  constexpr std::size_t kLongest = 300;
  constexpr std::size_t kAround = 60;
  if (line.size() <= kLongest) {
    return std::string(line);
  }
  const auto is_inside = [&](std::size_t at) {  // a character of several bytes
    return at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0U) == 0x80U;
  };
  const std::size_t head = static_cast<std::size_t>(
      std::mismatch(line.begin(), line.end(), other.begin(), other.end()).first - line.begin());
  const std::size_t tail =
      std::min(line.size() - head,
               static_cast<std::size_t>(std::mismatch(line.rbegin(), line.rend(), other.rbegin(), other.rend()).first -
                                        line.rbegin()));
  std::size_t begin = head - std::min(head, kAround);
  std::size_t end = std::min({line.size(), line.size() - tail + kAround, begin + kLongest});
  while (is_inside(begin)) {
    ++begin;
  }
  while (is_inside(end)) {
    ++end;
  }
  return fmt::format("{}{}{}", begin > 0 ? "..." : "", line.substr(begin, end - begin), end < line.size() ? "..." : "");
}

std::string_view line_of(std::string_view text, int line) {
  const std::vector<std::string_view> lines = split_lines(text);
  const bool there = line > 0 && static_cast<std::size_t>(line) <= lines.size();
  return there ? lines[static_cast<std::size_t>(line) - 1] : std::string_view();
}

}  // namespace unidle::knobs
