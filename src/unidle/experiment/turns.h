// The order in which two settings of one program run: A, B, B, A, A, B ...
#pragma once

#include <array>

namespace unidle::experiment {

/// A: the unchanged program; B: the program with the change.
enum class Side { kA, kB };

/// The two runs of a pair, in their order. Every other pair is reversed, so that a machine that gradually slows down
/// favours neither side.
constexpr std::array<Side, 2> turns_of_pair(std::size_t pair) {
  return pair % 2 == 0 ? std::array{Side::kA, Side::kB} : std::array{Side::kB, Side::kA};
}

}  // namespace unidle::experiment
