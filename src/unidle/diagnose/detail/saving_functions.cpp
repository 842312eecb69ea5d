#include "unidle/diagnose/detail/saving_functions.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace unidle::diagnose::detail {

namespace {

bool is_in(const HotLine& line, std::string_view phase) { return line.role == "train" && line.phase == phase; }

}  // namespace

bool is_beside_saving(const Signals& signals, const HotLine& line) {
  const auto runs_in = [&](std::string_view phase) {
    return std::ranges::any_of(signals.hot, [&](const HotLine& other) {
      return is_in(other, phase) && !other.where.empty() && other.function == line.function;
    });
  };
  return is_in(line, "between") && line.function != "<module>" && runs_in("checkpoint") && !runs_in("train");
}

double part_beside_saving(const Signals& signals) {
  constexpr std::int64_t kFewest = 5;
  std::int64_t beside = 0;
  std::int64_t all = 0;
  for (const HotLine& line : signals.hot) {
    beside += is_beside_saving(signals, line) ? line.hits : 0;
    all = is_in(line, "between") ? std::max(all, line.total) : all;
  }
  return beside < kFewest ? 0 : static_cast<double>(beside) / static_cast<double>(std::max(beside, all));
}

}  // namespace unidle::diagnose::detail
