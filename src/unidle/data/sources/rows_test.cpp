// Sources of rows: arrays, windows and their subsets.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "unidle/base/error.h"
#include "unidle/data/loader.h"
#include "unidle/data/sources/arrays.h"
#include "unidle/data/sources/windows.h"
#include "unidle/data/subset.h"

namespace unidle::data {
namespace {

template <typename Value>
ArrayView view_of(const std::vector<Value>& values, DType dtype, std::vector<std::int64_t> shape) {
  ArrayView view{reinterpret_cast<const std::byte*>(values.data()), dtype, std::move(shape), {}};
  view.strides.resize(view.shape.size());
  auto stride = static_cast<std::int64_t>(sizeof(Value));
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    view.strides[axis] = stride;
    stride *= view.shape[axis];
  }
  return view;
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

std::string bytes_of_batches(const Source& source, const LoaderOptions& options, int batches) {
  Loader loader(source, options);
  std::string bytes;
  for (int i = 0; i < batches; ++i) {
    const Batch batch = loader.next();
    for (std::size_t field = 0; field < source.fields().size(); ++field) {
      bytes.append(reinterpret_cast<const char*>(batch.field(field)),
                   source.fields()[field].bytes() * static_cast<std::size_t>(batch.samples()));
    }
  }
  return bytes;
}

TEST(ArraySourceTest, RowsComeFromAllArraysAlike) {
  const std::vector<float> table = counted(300 * 5);
  std::vector<std::int64_t> labels(300);
  std::iota(labels.begin(), labels.end(), 0);
  const ArraySource source(std::vector{view_of(table, DType::kF32, {300, 5}), view_of(labels, DType::kI64, {300})},
                           {"row"});
  EXPECT_EQ(source.fields()[0].name, "row");
  EXPECT_EQ(source.fields()[1].name, "1");
  EXPECT_GT(source.grain(), 1);
  Loader loader(source, {.batch = 32, .workers = 2, .seed = 2});
  for (int i = 0; i < 20; ++i) {
    const Batch batch = loader.next();
    const auto* rows = reinterpret_cast<const float*>(batch.field(0));
    const auto* numbers = reinterpret_cast<const std::int64_t*>(batch.field(1));
    for (std::int64_t row = 0; row < batch.samples(); ++row) {
      for (int column = 0; column < 5; ++column) {
        ASSERT_EQ(rows[row * 5 + column], static_cast<float>(numbers[row] * 5 + column));
      }
    }
  }
}

TEST(ArraySourceTest, RowsMayLieApartAndBackwards) {
  const std::vector<float> table = counted(100);
  ArrayView apart = view_of(table, DType::kF32, {10, 4});
  apart.strides[0] = 40;
  ArrayView backwards = apart;
  backwards.data += 9 * 40;
  backwards.strides[0] = -40;
  const ArraySource source(std::vector{apart, backwards}, {});
  Loader loader(source, {.batch = 10, .shuffle = false});
  const Batch batch = loader.next();
  for (int row = 0; row < 10; ++row) {
    EXPECT_EQ(reinterpret_cast<const float*>(batch.field(0))[row * 4 + 3], static_cast<float>(row * 10 + 3));
    EXPECT_EQ(reinterpret_cast<const float*>(batch.field(1))[row * 4], static_cast<float>((9 - row) * 10));
  }
}

TEST(ArraySourceTest, RefusesWhatIsNoRows) {
  const std::vector<float> table = counted(100);
  ArrayView pieces = view_of(table, DType::kF32, {10, 5});
  pieces.strides = {40, 8};
  for (const std::vector<ArrayView>& wrong :
       {std::vector<ArrayView>{},
        {view_of(table, DType::kF32, {})},
        {pieces},
        {view_of(table, DType::kF32, {10, 2}), view_of(table, DType::kF32, {9, 2})}}) {
    try {
      ArraySource source(wrong, {});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
    }
  }
}

TEST(ArraySourceTest, RefusesRowsWithoutValuesWhereLengthsDiffer) {
  const std::vector<float> none;
  const std::vector<std::int64_t> starts = {0, 3, 8};
  const std::vector<ArrayView> arrays = {view_of(none, DType::kF32, {8, 0}), view_of(starts, DType::kI64, {3})};
  try {
    ArraySource source(arrays, {}, {0});
    FAIL() << "a batch cannot tell its extent by its bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
  }
}

TEST(SubsetTest, GathersTheSameAsOneByOne) {
  const std::vector<float> table = counted(200 * 3);
  const ArraySource source(std::vector{view_of(table, DType::kF32, {200, 3})}, {});
  std::vector<std::int64_t> items;
  for (std::int64_t i = 0; i < 150; ++i) {
    items.push_back(i * 7 % 200);
  }
  const Subset subset(source, items);
  Loader loader(subset, {.batch = 150, .workers = 1, .shuffle = false});
  const Batch batch = loader.next();
  for (std::size_t row = 0; row < items.size(); ++row) {
    EXPECT_EQ(reinterpret_cast<const float*>(batch.field(0))[row * 3], static_cast<float>(items[row] * 3));
  }
  EXPECT_THROW(Subset(source, {0, 200}), Error);
  EXPECT_THROW(Subset(source, {-1}), Error);
}

class WindowsTest : public ::testing::Test {
 protected:
  std::vector<float> long_one = counted(50 * 2);
  std::vector<float> short_one = counted(9 * 2);
  std::vector<ArrayView> series() const {
    return {view_of(long_one, DType::kF32, {50, 2}), view_of(short_one, DType::kF32, {9, 2})};
  }
};

TEST_F(WindowsTest, EveryWindowLiesInOneSeries) {
  const WindowSource source(series(), {.length = 6, .horizon = 2, .stride = 3});
  ASSERT_EQ(source.items(), 15 + 1);
  for (std::int64_t item = 0; item < source.items(); ++item) {
    const auto [number, step] = source.place(item);
    EXPECT_EQ(number, item < 15 ? 0u : 1u);
    EXPECT_EQ(step, item < 15 ? item * 3 : 0);
    std::vector<std::byte> input(6 * 2 * 4);
    std::vector<std::byte> target(2 * 2 * 4);
    const Places places{input, target};
    source.read({item, 0, 0}, {&places, 1});
    EXPECT_EQ(*reinterpret_cast<const float*>(input.data()), static_cast<float>(step * 2));
    EXPECT_EQ(*reinterpret_cast<const float*>(target.data()), static_cast<float>((step + 6) * 2));
  }
}

TEST_F(WindowsTest, NoWindowReachesOverAGap) {
  long_one[20 * 2 + 1] = std::numeric_limits<float>::quiet_NaN();
  const WindowSource source(series(), {.length = 6, .horizon = 2});
  EXPECT_EQ(source.items(), 13 + 22 + 2);
  const WindowSource all(series(), {.length = 6, .horizon = 2, .skip_gaps = false});
  EXPECT_EQ(all.items(), 43 + 2);
  for (std::int64_t item = 0; item < source.items(); ++item) {
    std::vector<float> input(12);
    std::vector<float> target(4);
    const Places places{std::as_writable_bytes(std::span(input)), std::as_writable_bytes(std::span(target))};
    source.read({item, 0, 0}, {&places, 1});
    for (const float value : input) {
      EXPECT_FALSE(std::isnan(value));
    }
    for (const float value : target) {
      EXPECT_FALSE(std::isnan(value));
    }
  }
}

TEST_F(WindowsTest, TargetsAreChosenColumns) {
  const WindowSource source(series(), {.length = 3, .horizon = 2, .targets = {1}});
  EXPECT_EQ(source.fields()[1].shape, (std::vector<std::int64_t>{2, 1}));
  std::vector<float> input(6);
  std::vector<float> target(2);
  const Places places{std::as_writable_bytes(std::span(input)), std::as_writable_bytes(std::span(target))};
  source.read({4, 0, 0}, {&places, 1});
  EXPECT_EQ(target, (std::vector<float>{(4 + 3) * 2 + 1, (4 + 4) * 2 + 1}));
}

TEST_F(WindowsTest, TheSameBytesForAnyWorkersRanksAndStart) {
  const WindowSource source(series(), {.length = 4, .horizon = 1, .stride = 2});
  const std::size_t bytes = source.fields()[0].bytes() + source.fields()[1].bytes();
  const std::string expected = bytes_of_batches(source, {.batch = 1, .seed = 6}, 3 * static_cast<int>(source.items()));
  for (const int workers : {1, 3}) {
    EXPECT_EQ(
        bytes_of_batches(source, {.batch = 1, .workers = workers, .seed = 6}, 3 * static_cast<int>(source.items())),
        expected);
  }
  for (std::int64_t start = 0; start < source.items(); ++start) {
    EXPECT_EQ(bytes_of_batches(source, {.batch = 1, .workers = 1, .seed = 6, .start_sample = start}, 10),
              expected.substr(static_cast<std::size_t>(start) * bytes, 10 * bytes));
  }
  for (int rank = 0; rank < 3; ++rank) {
    const std::string some = bytes_of_batches(source, {.batch = 1, .seed = 6, .rank = rank, .world = 3}, 8);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(some.substr(i * bytes, bytes),
                expected.substr((i * 3 + static_cast<std::size_t>(rank)) * bytes, bytes));
    }
  }
}

TEST_F(WindowsTest, RefusesWhatMakesNoSense) {
  const auto code_of = [&](const WindowOptions& options, const std::vector<ArrayView>& arrays) {
    try {
      WindowSource source(arrays, options);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code_of({.length = 0}, series()), ErrorCode::kUsage);
  EXPECT_EQ(code_of({.length = 3, .stride = 0}, series()), ErrorCode::kUsage);
  EXPECT_EQ(code_of({.length = 3, .targets = {2}}, series()), ErrorCode::kUsage);
  EXPECT_EQ(code_of({.length = 3}, {}), ErrorCode::kUsage);
  EXPECT_EQ(code_of({.length = 60}, series()), ErrorCode::kInput);
  const std::vector<double> wide(10);
  EXPECT_EQ(code_of({.length = 3}, {view_of(wide, DType::kF64, {10})}), ErrorCode::kUsage);
}

}  // namespace
}  // namespace unidle::data
