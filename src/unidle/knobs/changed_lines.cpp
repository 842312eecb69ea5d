#include "unidle/knobs/changed_lines.h"

#include <algorithm>

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

std::string_view line_of(std::string_view text, int line) {
  const std::vector<std::string_view> lines = split_lines(text);
  const bool there = line > 0 && static_cast<std::size_t>(line) <= lines.size();
  return there ? lines[static_cast<std::size_t>(line) - 1] : std::string_view();
}

}  // namespace unidle::knobs
