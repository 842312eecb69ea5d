// Numbers distinct texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::data::tables {

/// Distinct texts, numbered from 0 in order of insertion. Not thread-safe, except for concurrent find().
class Dictionary {
 public:
  /// Returns the text's number, the next one for a new text.
  std::uint32_t number_of(std::string_view text);
  std::optional<std::uint32_t> find(std::string_view text) const;
  std::size_t size() const { return texts_.size(); }
  const std::vector<std::string>& texts() const { return texts_; }  // by number

 private:
  struct Place {
    std::uint64_t hash = 0;
    std::uint32_t number = kFree;
  };
  static constexpr std::uint32_t kFree = 0xffffffff;
  /// The position of the text, or the free one for it. REQUIRES: places_ is not empty.
  std::size_t place_of(std::string_view text, std::uint64_t hash) const;
  void grow();

  std::vector<Place> places_;  // a power of two, at most half full, so that one probe usually suffices
  std::vector<std::string> texts_;
};

}  // namespace unidle::data::tables
