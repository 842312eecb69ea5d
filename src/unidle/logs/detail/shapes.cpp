#include "unidle/logs/detail/shapes.h"

#include <algorithm>
#include <cstring>

namespace unidle::logs::detail {

namespace {

using Block = unsigned char __attribute__((vector_size(16)));  // one register on any 64-bit processor

/// Whether the bytes of two blocks are equal, or digits in both.
bool alike(const char* one, const char* other) {
  Block a;
  Block b;
  std::memcpy(&a, one, sizeof a);
  std::memcpy(&b, other, sizeof b);
  const Block zero = Block{} + static_cast<unsigned char>('0');
  const auto differ = (a != b) & ((a - zero > 9) | (b - zero > 9));
  std::array<std::uint64_t, 2> bits;
  std::memcpy(bits.data(), &differ, sizeof bits);
  return (bits[0] | bits[1]) == 0;
}

/// REQUIRES: size >= sizeof(Block).
bool alike(const char* one, const char* other, std::size_t size) {
  std::size_t at = 0;
  for (; at + sizeof(Block) <= size; at += sizeof(Block)) {
    if (!alike(one + at, other + at)) {
      return false;
    }
  }
  const std::size_t last = size - sizeof(Block);
  return at == size || alike(one + last, other + last);
}

}  // namespace

const Shape* Shapes::known(std::string_view line) {
  Set& set = sets_[line.size() % kSets];
  for (std::size_t i = 0; i < kWays; ++i) {
    const std::size_t way = (set.newest + i) % kWays;
    const Slot& slot = set.slots[way];
    if (slot.size == line.size() && slot.size > 0 && alike(line.data(), slot.line.data(), slot.size)) {
      set.newest = way;
      return &slot.shape;
    }
  }
  return nullptr;
}

const Shape& Shapes::look(std::string_view line) {
  const bool kept = line.size() >= kShortest && line.size() <= kLongest;
  Shape* shape = &unkept_;
  if (kept) {
    Set& set = sets_[line.size() % kSets];
    set.newest = (set.newest + 1) % kWays;
    Slot& slot = set.slots[set.newest];
    slot.size = line.size();
    std::copy(line.begin(), line.end(), slot.line.begin());
    shape = &slot.shape;
  }
  matcher_.find(line, shape->hits);
  shape->bar_at = line.find("%|");
  return *shape;
}

}  // namespace unidle::logs::detail
