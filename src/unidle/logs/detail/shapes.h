// Caches what is found in a line, ignoring the values of its digits: most lines of a training log differ from an
// earlier one only in digits, and need not be searched again.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "unidle/logs/detail/keywords.h"

namespace unidle::logs::detail {

struct Shape {
  Hits hits;
  std::size_t bar_at = std::string_view::npos;  // position of "%|"
};

/// Remembers the shapes of some lines of every length. The results equal the matcher's, because keywords contain no
/// digits and their edges treat all digits alike. Not thread-safe; the matcher must outlive it.
class Shapes {
 public:
  explicit Shapes(const Matcher& matcher) : matcher_(matcher) {}

  /// The shape of a similar recent line, otherwise nullptr. Valid until the next look().
  const Shape* known(std::string_view line);
  /// Searches a line. Valid until the next call.
  const Shape& look(std::string_view line);

 private:
  static constexpr std::size_t kShortest = 16;
  static constexpr std::size_t kLongest = 320;  // longer lines are searched each time
  static constexpr std::size_t kSets = 64;
  static constexpr std::size_t kWays = 4;

  struct Slot {
    std::size_t size = 0;  // 0: empty
    std::array<char, kLongest> line;
    Shape shape;
  };
  struct Set {
    std::array<Slot, kWays> slots;
    std::size_t newest = 0;
  };

  const Matcher& matcher_;
  std::array<Set, kSets> sets_;
  Shape unkept_;
};

}  // namespace unidle::logs::detail
