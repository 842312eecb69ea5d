#include "unidle/data/tables/dictionary.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace unidle::data::tables {

namespace {

constexpr std::size_t kFewestPlaces = 16;

std::uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace

std::size_t Dictionary::place_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = places_.size() - 1;
  std::size_t at = hash & mask;
  while (places_[at].number != kFree && (places_[at].hash != hash || texts_[places_[at].number] != text)) {
    at = (at + 1) & mask;
  }
  return at;
}

void Dictionary::grow() {
  const std::vector<Place> before = std::exchange(places_, {});
  places_.resize(std::max(kFewestPlaces, 2 * before.size()));
  const std::size_t mask = places_.size() - 1;
  for (const Place& place : before) {
    if (place.number == kFree) {
      continue;
    }
    std::size_t at = place.hash & mask;
    while (places_[at].number != kFree) {
      at = (at + 1) & mask;
    }
    places_[at] = place;
  }
}

std::optional<std::uint32_t> Dictionary::find(std::string_view text) const {
  if (places_.empty()) {
    return std::nullopt;
  }
  const Place& place = places_[place_of(text, hash_of(text))];
  return place.number == kFree ? std::nullopt : std::optional(place.number);
}

std::uint32_t Dictionary::number_of(std::string_view text) {
  if (2 * texts_.size() >= places_.size()) {
    grow();
  }
  const std::uint64_t hash = hash_of(text);
  Place& place = places_[place_of(text, hash)];
  if (place.number == kFree) {
    texts_.emplace_back(text);
    place = {hash, static_cast<std::uint32_t>(texts_.size() - 1)};
  }
  return place.number;
}

}  // namespace unidle::data::tables
