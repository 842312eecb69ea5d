#include "unidle/report/text_table.h"

#include <algorithm>

#include "unidle/base/layout.h"

namespace unidle::report {

namespace {

constexpr std::size_t kGap = 2;

std::size_t columns(const std::string& text) { return static_cast<std::size_t>(display_width(text)); }

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::size_t length = columns(text);
  const std::string pad(width > length ? width - length : 0, ' ');
  return right ? pad + text : text + pad;
}

std::string trimmed_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

std::string cut(const std::string& text, std::size_t length) {
  if (columns(text) <= length) {
    return text;
  }
  const std::string_view kept = prefix_of_width(text, static_cast<int>(std::max<std::size_t>(length, 1)) - 1);
  return std::string(kept) + "…";
}

std::string TextTable::text(int width) const {
  std::vector<std::size_t> widths;
  const auto grow = [&](const std::vector<std::string>& row) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], columns(row[i]));
    }
  };
  grow(header_);
  std::for_each(rows_.begin(), rows_.end(), grow);
  std::size_t total = 0;
  for (const std::size_t column : widths) {
    total += column + kGap;
  }
  if (total > static_cast<std::size_t>(std::max(width, 1)) + kGap) {
    return stacked(width);
  }
  std::string out;
  const auto put = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += padded(row[i], widths[i], i > 0) + (i + 1 < row.size() ? std::string(kGap, ' ') : "");
    }
    out += trimmed_end(line);
  };
  put(header_);
  std::for_each(rows_.begin(), rows_.end(), put);
  return out;
}

std::string TextTable::stacked(int width) const {
  const auto limit = static_cast<std::size_t>(std::max(width, 8));
  std::string out;
  for (const auto& row : rows_) {
    if (!row.empty()) {
      out += cut(row[0], limit) + '\n';
    }
    for (std::size_t i = 1; i < row.size(); ++i) {
      if (!row[i].empty()) {
        const std::string label = i < header_.size() && !header_[i].empty() ? header_[i] + ": " : std::string();
        out += cut("  " + label + row[i], limit) + '\n';
      }
    }
  }
  return out;
}

}  // namespace unidle::report
