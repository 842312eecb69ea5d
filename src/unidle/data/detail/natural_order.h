// Natural order of names with numbers.
#pragma once

#include <cctype>
#include <string_view>

namespace unidle::data::detail {

/// "part2" before "part10": compares runs of digits as numbers of any length, everything else bytewise. Of names that
/// differ only in leading zeros, the one with fewer comes first.
inline bool natural_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto run = [&](std::string_view text, std::size_t& at) {
    const std::size_t begin = at;
    while (at < text.size() && digit(text[at])) {
      ++at;
    }
    std::string_view digits = text.substr(begin, at - begin);
    while (digits.size() > 1 && digits.front() == '0') {
      digits.remove_prefix(1);
    }
    return digits;
  };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const std::string_view left = run(a, i);
      const std::string_view right = run(b, j);
      if (left != right) {
        return left.size() != right.size() ? left.size() < right.size() : left < right;
      }
    } else if (a[i] != b[j]) {
      return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
    } else {
      ++i;
      ++j;
    }
  }
  const std::size_t left = a.size() - i;
  const std::size_t right = b.size() - j;
  return left != right ? left < right : a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace unidle::data::detail
