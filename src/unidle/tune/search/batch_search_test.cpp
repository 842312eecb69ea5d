#include "unidle/tune/search/batch_search.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace unidle::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<long long> sizes_of(const std::vector<BatchChoice>& choices) {
  std::vector<long long> sizes;
  for (const BatchChoice& choice : choices) {
    sizes.push_back(choice.size);
  }
  return sizes;
}

TEST(BatchChoices, HoldTheEffectiveBatchByExactDivisors) {
  const auto choices = batch_choices({{"batch.size", 3}, {"batch.accumulation", 4}}, false);
  EXPECT_THAT(sizes_of(choices), ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_TRUE(choices[2].changes.empty());
  EXPECT_EQ(choices[5].changes, (knobs::Settings{{"batch.size", 12}, {"batch.accumulation", 1}}));
  EXPECT_TRUE(batch_choices({{"batch.size", 3}}, false).empty()) << "nothing to accumulate with";
  EXPECT_TRUE(batch_choices({{"batch.size", 1}, {"batch.accumulation", 1}}, false).empty());
  EXPECT_TRUE(batch_choices({}, true).empty());
}

TEST(BatchChoices, AnotherEffectiveBatchScalesTheLearningRate) {
  const auto choices = batch_choices({{"batch.size", 4}, {"optimizer.lr", 0.001}}, true);
  const auto sixteen = std::find_if(choices.begin(), choices.end(), [](const auto& each) { return each.size == 16; });
  ASSERT_NE(sixteen, choices.end());
  EXPECT_EQ(sixteen->changes, (knobs::Settings{{"batch.size", 16}, {"optimizer.lr", 0.002}}));
  EXPECT_THAT(sixteen->reason, HasSubstr("16 instead of 4"));
  EXPECT_EQ(sizes_of(choices).front(), 1);
}

TEST(BatchChoices, AreNoLongerThanTheRun) {
  EXPECT_EQ(sizes_of(batch_choices({{"batch.size", 4}}, true, 50)).back(), 48);
  EXPECT_EQ(sizes_of(batch_choices({{"batch.size", 64}}, true, 50)).back(), 64) << "what it is now stays";
  const auto held = batch_choices({{"batch.size", 4}, {"batch.accumulation", 16}}, true, 50);
  EXPECT_EQ(sizes_of(held).back(), 64) << "the effective batch of now stays, too";
  EXPECT_EQ(held.back().changes.at("batch.accumulation"), 1);
}

/// The sizes requested, in order, when the speed is `rate` (0: the size fails).
template <typename Rate>
std::vector<long long> asked(std::vector<long long> sizes, std::size_t start, Rate rate, long long* best = nullptr) {
  BatchSearch search(sizes, start, 6);
  std::vector<long long> found;
  double fastest = rate(sizes[start]);
  while (const auto next = search.next()) {
    const double now = rate(sizes[*next]);
    found.push_back(sizes[*next]);
    search.report(now == 0               ? BatchSearch::Result::kFailed
                  : now > 1.03 * fastest ? BatchSearch::Result::kBetter
                  : now > 0.97 * fastest ? BatchSearch::Result::kFlat
                                         : BatchSearch::Result::kWorse);
    fastest = std::max(fastest, now);
  }
  if (best != nullptr) {
    *best = sizes[search.best()];
  }
  return found;
}

const std::vector<long long> kSizes = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

TEST(BatchSearch, DoublesWhileItPays) {
  EXPECT_THAT(asked(kSizes, 3, [](long long size) { return double(std::min(size, 16LL)); }), ElementsAre(8, 16, 32, 64))
      << "one doubling may give nothing, two end it";
  EXPECT_THAT(asked(kSizes, 3, [](long long size) { return double(size); }), ElementsAre(8, 16, 32, 64));
}

TEST(BatchSearch, HalvesTheDistanceToWhatHasNoRoom) {
  long long best = 0;
  const auto room_for = [](long long most) {
    return [most](long long size) { return size > most ? 0 : double(size); };
  };
  EXPECT_THAT(asked(kSizes, 3, room_for(24), &best), ElementsAre(8, 16, 32, 24));
  EXPECT_EQ(best, 24);
  EXPECT_THAT(asked(kSizes, 3, room_for(6), &best), ElementsAre(8, 6));
  EXPECT_EQ(best, 6);
  EXPECT_THAT(asked({4, 5, 6, 7, 8}, 0, room_for(7), &best), ElementsAre(8, 6, 7));
  EXPECT_EQ(best, 7);
}

TEST(BatchSearch, LooksDownwardsWhenTheFirstDoublingIsSlower) {
  long long best = 0;
  EXPECT_THAT(asked(kSizes, 11, [](long long size) { return 1.0 / double(size); }), ElementsAre())
      << "64 is the largest";
  EXPECT_THAT(asked(
                  kSizes, 9, [](long long size) { return size < 8 ? 0.5 : 8.0 / double(size); }, &best),
              ElementsAre(64, 16, 8, 4));
  EXPECT_EQ(best, 8);
  EXPECT_THAT(asked(kSizes, 3, [](long long) { return 1.0; }, &best), ElementsAre(8, 16)) << "flat: nothing to find";
  EXPECT_EQ(best, 4);
}

TEST(BatchSearch, HasAnEnd) {
  for (std::size_t start = 0; start < kSizes.size(); ++start) {
    EXPECT_LE(asked(kSizes, start, [](long long size) { return double(size % 7 + 1); }).size(), 6u);
  }
}

}  // namespace
}  // namespace unidle::tune
