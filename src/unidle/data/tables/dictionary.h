// Texts by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unidle::data::tables {

/// Different texts, numbered from 0 as they come. Not thread-safe; several threads may find() at a time.
class Dictionary {
 public:
  /// A text that is new gets the next number.
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
  /// Where the text is, or the free place where it belongs. REQUIRES: places_ is not empty.
  std::size_t place_of(std::string_view text, std::uint64_t hash) const;
  void grow();

  std::vector<Place> places_;  // a power of two of them, at most half of them taken: one look as a rule
  std::vector<std::string> texts_;
};

}  // namespace unidle::data::tables
