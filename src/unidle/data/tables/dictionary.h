// Texts by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const;
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<std::string> texts_;
};

}  // namespace unidle::data::tables
