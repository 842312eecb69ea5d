#include "unidle/data/tables/dictionary.h"

#include <xxhash.h>

namespace unidle::data::tables {

std::size_t Dictionary::Hash::operator()(std::string_view text) const { return XXH3_64bits(text.data(), text.size()); }

std::optional<std::uint32_t> Dictionary::find(std::string_view text) const {
  const auto found = numbers_.find(text);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t Dictionary::number_of(std::string_view text) {
  if (const auto known = find(text)) {
    return *known;
  }
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(text);
  numbers_.emplace(text, number);
  return number;
}

}  // namespace unidle::data::tables
