#include <cstring>

#include "unidle/base/characters.h"
#include "unidle/logs/detail/keywords.h"
#include "unidle/logs/detail/numbers.h"

namespace unidle::logs::detail {

namespace {

/// Like is_word, but characters outside ASCII separate words: Chinese needs no spaces.
bool is_ascii_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

std::uint32_t load3(const char* at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(at[i])); };
  return byte(0) | byte(1) << 8U | byte(2) << 16U;
}

/// Rough frequency of a byte in logs: the matcher searches for the rarest three bytes of a keyword.
int commonness(char c) {
  static constexpr std::string_view kCommon = " etaoinsrlcdmup0123456789.-:_";
  const std::size_t place = kCommon.find(c);
  return place == std::string_view::npos ? 0 : 30 - static_cast<int>(place);
}

std::uint32_t rarest_three(std::string_view text) {
  std::uint32_t best = 0;
  int least = 1 << 20;
  for (std::uint32_t i = 0; i + 3 <= text.size(); ++i) {
    const int cost = commonness(text[i]) + commonness(text[i + 1]) + commonness(text[i + 2]);
    if (cost < least) {
      least = cost;
      best = i;
    }
  }
  return best;
}

bool edges_fit(std::string_view line, std::size_t begin, std::size_t end, Edge edge) {
  if (edge == Edge::kAny) {
    return true;
  }
  if (begin > 0 && is_ascii_word(line[begin - 1])) {
    return false;
  }
  if (edge == Edge::kFront || end >= line.size()) {
    return true;
  }
  return edge == Edge::kBoth ? !is_ascii_word(line[end]) : !is_letter(line[end]);
}

}  // namespace

const Hit* Hits::first(Word word) const {
  if (!has(word)) {
    return nullptr;
  }
  for (const Hit& hit : all()) {
    if (hit.keyword->word == word) {
      return &hit;
    }
  }
  return nullptr;
}

Matcher::Matcher(std::span<const Keyword> keywords) {
  entries_.reserve(keywords.size());
  for (const Keyword& keyword : keywords) {
    const std::uint32_t offset = rarest_three(keyword.text);
    std::uint16_t& first = first_[slot(load3(keyword.text.data() + offset))];
    entries_.push_back({&keyword, offset, first});
    first = static_cast<std::uint16_t>(entries_.size());
  }
}

void Matcher::verify(std::string_view line, std::size_t at, std::uint32_t entry, Hits& hits) const {
  for (; entry != 0; entry = entries_[entry - 1].next) {
    const Entry& one = entries_[entry - 1];
    const std::string_view text = one.keyword->text;
    if (at < one.offset || line.size() - (at - one.offset) < text.size()) {
      continue;
    }
    const std::size_t begin = at - one.offset;
    std::size_t same = 0;
    while (same < text.size() && lower(line[begin + same]) == text[same]) {
      ++same;
    }
    if (same == text.size() && edges_fit(line, begin, begin + same, one.keyword->edge)) {
      hits.add({one.keyword, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin + same)});
    }
  }
}

void Matcher::find(std::string_view line, Hits& hits) const {
  hits.clear();
  if (line.size() < 3) {
    return;
  }
  const char* const data = line.data();
  const std::size_t last = line.size() - 3;
  for (std::size_t at = 0; at < last; ++at) {
    std::uint32_t four = 0;
    std::memcpy(&four, data + at, 4);  // at < last: the fourth byte is in the line
    const std::uint32_t entry = first_[slot(four & 0xFFFFFFU)];
    if (entry != 0) [[unlikely]] {
      verify(line, at, entry, hits);
    }
  }
  if (const std::uint32_t entry = first_[slot(load3(data + last))]; entry != 0) {
    verify(line, last, entry, hits);
  }
}

}  // namespace unidle::logs::detail
