// How the rate grows with the number of ranks, and what is lost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unidle/report/comparison_words.h"

namespace unidle::report {

/// What a rank spends on each sample, in seconds, in the run with fewer ranks and in the one with more.
struct RankCost {
  std::string part;  // for people
  double fewer_s = 0;
  double more_s = 0;

  double lost_s() const { return more_s - fewer_s; }
};

struct Scaling {
  std::size_t fewer = 1;  // ranks
  std::size_t more = 1;
  bool a_has_more = false;
  experiment::Ratio efficiency;  // 1: the rate grew as the ranks did
  std::vector<RankCost> costs;   // their sum is the time of a rank per sample
  double samples_fewer = 0;      // per rank and step
  double samples_more = 0;
};

/// Nothing when both runs have equally many ranks, are different programs, or have no rates.
std::optional<Scaling> scaling_of(const Comparison& comparison, const Translator& translator);

/// "4 ranks train 1.62x as fast as 2: an efficiency of 81 % (78 % to 84 %)." REQUIRES: it has an interval.
std::string scaling_words(const Scaling& scaling, const Translator& translator);

/// What the added ranks lose, largest first; "" when they lose nothing.
std::string loss_words(const Scaling& scaling, const Translator& translator);

/// Time of a rank per sample, by part; A, B and the change.
std::vector<WordRow> scaling_rows(const Comparison& comparison, const Translator& translator);

}  // namespace unidle::report
