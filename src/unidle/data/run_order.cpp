#include "unidle/data/run_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/data/loader.h"
#include "unidle/data/random.h"

namespace unidle::data {

namespace {

// A different key from the randomness of the samples.
constexpr std::uint64_t kRuns = 0x72756e732072756eULL;
constexpr std::uint64_t kRest = 0x7265737420727573ULL;
constexpr std::uint64_t kWindow = 0x77696e646f772072ULL;

}  // namespace

RunOrder::RunOrder(std::int64_t items, std::int64_t run, std::int64_t window) : items_(items), run_(run) {
  const std::array<std::pair<const char*, std::int64_t>, 3> given = {
      {{"items", items}, {"run", run}, {"window", window}}};
  for (const auto& [name, value] : given) {
    if (value < 1) {
      throw Error(ErrorCode::kUsage, fmt::format("order of runs: {}", name),
                  fmt::format("expected 1 or more, found {}", value));
    }
  }
  whole_runs_ = items_ / run_;
  rest_ = items_ % run_;
  runs_ = whole_runs_ + (rest_ > 0 ? 1 : 0);
  window_ = std::min(window, runs_);
}

std::int64_t RunOrder::place_of_rest(std::uint64_t seed, std::int64_t epoch) const {
  if (rest_ == 0) {
    return runs_;
  }
  CounterRandom random{seed, static_cast<std::uint64_t>(epoch), kRest};
  return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(runs_));
}

std::int64_t RunOrder::start(std::int64_t number, std::int64_t place_of_rest) const {
  return number * run_ - (number > place_of_rest ? run_ - rest_ : 0);
}

Order::Run RunOrder::run_at(std::uint64_t seed, std::int64_t epoch, std::int64_t number) const {
  const std::int64_t place = place_of_rest(seed, epoch);
  if (number == place) {
    return {whole_runs_ * run_, items_};
  }
  const std::int64_t chosen =
      shuffled_index(hash_words({seed, kRuns}), epoch, number - (number > place ? 1 : 0), whole_runs_);
  return {chosen * run_, (chosen + 1) * run_};
}

Order::Place RunOrder::at(std::uint64_t seed, std::int64_t epoch, std::int64_t index) const {
  const std::int64_t place = place_of_rest(seed, epoch);
  // The short run can only shift a place forward from where whole runs would put it, and by at most one window.
  std::int64_t window = index / (window_ * run_);
  if (index >= start((window + 1) * window_, place)) {
    ++window;
  }
  const std::int64_t begin = start(window * window_, place);
  const std::int64_t end = start(std::min((window + 1) * window_, runs_), place);
  const std::uint64_t key = hash_words({seed, static_cast<std::uint64_t>(window), kWindow});
  const std::int64_t chosen = begin + shuffled_index(key, epoch, index - begin, end - begin);
  std::int64_t number = chosen / run_;
  if (chosen >= start(number + 1, place)) {
    ++number;
  }
  return {run_at(seed, epoch, number).begin + chosen - start(number, place), seed};
}

}  // namespace unidle::data
