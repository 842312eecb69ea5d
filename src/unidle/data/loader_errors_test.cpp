// Handling of unreadable samples and invalid options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "unidle/base/error.h"
#include "unidle/data/loader.h"
#include "unidle/data/testing/number_source.h"

namespace unidle::data {
namespace {

using testing::item_of;
using testing::NumberSource;
using testing::take;

/// Fails for some items.
class DamagedSource final : public NumberSource {
 public:
  DamagedSource(std::int64_t items, std::int64_t per_item, std::set<std::int64_t> damaged,
                ErrorCode code = ErrorCode::kInput)
      : NumberSource(items, per_item) {
    before_read = [damaged = std::move(damaged), code](const ItemRequest& request) {
      if (damaged.contains(request.item)) {
        throw Error(code, "item " + std::to_string(request.item), "is damaged");
      }
    };
  }
};

TEST(LoaderErrorTest, ReachesTheBatchThatIsDueAndStays) {
  for (const int workers : {0, 1, 4}) {
    const DamagedSource source(100, 1, {9, 10});
    Loader loader(source, {.batch = 4, .workers = workers, .shuffle = false});
    loader.next();
    loader.next();
    for (int again = 0; again < 2; ++again) {
      try {
        loader.next();
        FAIL() << workers;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInput);
        EXPECT_EQ(error.subject(), "item 9");  // the earliest, regardless of which failed first
      }
    }
  }
}

std::vector<std::int64_t> items_of(const Batch& batch) {
  std::vector<std::int64_t> items;
  for (const std::string& sample : testing::samples_of(batch)) {
    items.push_back(item_of(sample));
  }
  return items;
}

TEST(LoaderErrorTest, ABatchThatFailedIsPassedOver) {
  for (const int workers : {0, 1, 4}) {
    const DamagedSource source(14, 1, {4, 9, 10, 12});
    Loader loader(source, {.batch = 4, .workers = workers, .shuffle = false, .epoch_end = EpochEnd::kShort});
    EXPECT_FALSE(loader.pass_over());  // nothing has failed
    EXPECT_THAT(items_of(loader.next()), ::testing::ElementsAre(0, 1, 2, 3));
    for (const std::int64_t offset : {4, 8, 12}) {
      EXPECT_THROW(loader.next(), Error);
      const std::optional<Batch> passed = loader.pass_over();
      ASSERT_TRUE(passed);
      EXPECT_EQ(passed->epoch(), 0);
      EXPECT_EQ(passed->epoch_offset(), offset);
      EXPECT_EQ(passed->places(), offset == 12 ? 2 : 4);
    }
    const Batch next = loader.next();
    EXPECT_EQ(next.epoch(), 1);
    EXPECT_THAT(items_of(next), ::testing::ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(loader.skipped(), 0);
  }
}

TEST(LoaderErrorTest, AnItemFailsEveryBatchThatHasASampleOfIt) {
  for (const int workers : {0, 1, 4}) {
    const DamagedSource source(6, 3, {1});  // samples 3, 4, 5: in the first and the second batch
    Loader loader(source, {.batch = 4, .workers = workers, .shuffle = false, .epoch_end = EpochEnd::kShort});
    for (int batch = 0; batch < 2; ++batch) {
      EXPECT_THROW(loader.next(), Error) << batch;
      EXPECT_TRUE(loader.pass_over());
    }
    EXPECT_THAT(items_of(loader.next()), ::testing::ElementsAre(2, 3, 3, 3));
  }
}

TEST(LoaderErrorTest, OtherExceptionsAreCarriedToo) {
  NumberSource source(100, 1);
  source.before_read = [](const ItemRequest&) { throw std::logic_error("odd"); };
  for (const int workers : {0, 2}) {
    Loader loader(source, {.batch = 4, .workers = workers, .on_error = ErrorPolicy::kReplace});
    EXPECT_THROW(loader.next(), std::logic_error);
  }
}

TEST(LoaderErrorTest, ReplacePutsTheNextItemInItsPlaceAndCounts) {
  for (const int workers : {0, 1, 4}) {
    const DamagedSource source(10, 2, {3, 6, 7});
    Loader loader(source, {.batch = 4, .workers = workers, .shuffle = false, .on_error = ErrorPolicy::kReplace});
    std::vector<std::int64_t> items;
    for (const std::string& sample : take(loader, 5)) {
      items.push_back(item_of(sample));
    }
    EXPECT_THAT(items, ::testing::ElementsAre(0, 0, 1, 1, 2, 2, 4, 4, 4, 4, 5, 5, 8, 8, 8, 8, 8, 8, 9, 9));
    EXPECT_EQ(loader.skipped(), 3) << workers;
  }
}

TEST(LoaderErrorTest, SkippedCountsOnlyWhatWasDelivered) {
  const DamagedSource source(10, 1, {1, 5});
  Loader loader(source, {.batch = 4, .workers = 4, .shuffle = false, .on_error = ErrorPolicy::kReplace});
  loader.next();
  EXPECT_EQ(loader.skipped(), 1);
  loader.next();
  EXPECT_EQ(loader.skipped(), 2);
}

TEST(LoaderErrorTest, ReplaceGivesUpWhenNothingCanBeRead) {
  const DamagedSource source(3, 1, {0, 1, 2});
  Loader loader(source, {.batch = 4, .workers = 2, .on_error = ErrorPolicy::kReplace});
  EXPECT_THROW(loader.next(), Error);
}

TEST(LoaderErrorTest, LackOfMemoryIsNotHidden) {
  const DamagedSource source(10, 1, {2}, ErrorCode::kOutOfMemory);
  for (const ErrorPolicy policy : {ErrorPolicy::kSkip, ErrorPolicy::kReplace}) {
    Loader loader(source, {.batch = 4, .shuffle = false, .on_error = policy});
    try {
      loader.next();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    }
  }
}

TEST(LoaderErrorTest, RefusesOptionsThatMakeNoSense) {
  const NumberSource source(10, 1);
  const auto code_of = [&](const Source& from, const LoaderOptions& options) {
    try {
      Loader loader(from, options);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code_of(source, {.batch = 0}), ErrorCode::kUsage);
  EXPECT_EQ(code_of(source, {.workers = -2}), ErrorCode::kUsage);
  EXPECT_EQ(code_of(source, {.max_bytes = -1}), ErrorCode::kUsage);
  EXPECT_EQ(code_of(source, {.prefetch = 0}), ErrorCode::kUsage);
  EXPECT_EQ(code_of(source, {.start_sample = -1}), ErrorCode::kUsage);
  EXPECT_EQ(code_of(NumberSource(0, 1), {}), ErrorCode::kInput);
}

}  // namespace
}  // namespace unidle::data
