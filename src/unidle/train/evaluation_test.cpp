#include "unidle/train/evaluation.h"

#include <gmock/gmock.h>

#include <array>
#include <cstring>

#include "unidle/base/error.h"
#include "unidle/train/testing/line_workload.h"

namespace unidle::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LineWorkload;
using testing::PointSource;

Config config_with(std::vector<std::string> overrides) {
  return Config::from_text("workload: line\n", "line.yaml", overrides);
}

TEST(Evaluation, SeesEachHeldOutSampleOnceWhateverTheBatches) {
  at::manual_seed(1);
  LineWorkload workload(true);
  const Precision precision("off", at::kCPU);
  const Config whole = config_with({"validation.batch=12"});
  const Config parts = config_with({"validation.batch=5", "loader.workers=2"});
  const Config held = config_with({"batch.size=5", "data.on_device=true"});
  const auto expected = Evaluation(workload, whole, at::kCPU).run(precision);
  EXPECT_EQ(expected.at("samples"), 12);
  workload.batch_sizes.clear();
  Evaluation again(workload, parts, at::kCPU);
  EXPECT_EQ(again.samples(), 12);
  for (int round = 0; round < 2; ++round) {
    const auto metrics = again.run(precision);
    EXPECT_EQ(metrics.at("samples"), 12);
    EXPECT_NEAR(metrics.at("mse"), expected.at("mse"), 1e-6);
  }
  EXPECT_THAT(workload.batch_sizes, ElementsAre(5, 5, 2, 5, 5, 2));
  Evaluation on_device(workload, held, at::kCPU);
  on_device.run(precision);
  EXPECT_NEAR(on_device.run(precision).at("mse"), expected.at("mse"), 1e-6);
  EXPECT_TRUE(workload.model().is_training());
}

/// A type that torch cannot gather directly, in rows of a few numbers.
class WideRows final : public data::Source {
 public:
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return 1000; }
  bool same_every_epoch() const override { return true; }
  std::uint64_t read(const data::ItemRequest& request, std::span<const data::Places> samples) const override {
    const auto item = static_cast<std::uint16_t>(request.item + 65000 - 500);  // some values wrap around
    const std::array<std::uint16_t, 3> row = {item, 65535, static_cast<std::uint16_t>(item / 2)};
    std::memcpy(samples[0][0].data(), row.data(), sizeof(row));
    return sizeof(row);
  }

 private:
  std::vector<data::Field> fields_{{"numbers", data::DType::kU16, {3}}};
};

std::vector<at::Tensor> stream(const data::Source& source, bool on_device, data::LoaderOptions loader) {
  const std::vector<FieldUse> uses(source.fields().size(), FieldUse::kRaw);
  Input input(source, uses, at::kCPU, {.loader = loader, .on_device = on_device});
  std::vector<at::Tensor> batches;
  for (int i = 0; i < 40; ++i) {
    batches.push_back(input.fields(input.move(input.fetch()))[0].clone());
  }
  return batches;
}

TEST(DeviceRows, GiveTheLoadersBatchesInItsOrder) {
  const WideRows source;
  for (const data::LoaderOptions& options :
       {data::LoaderOptions{.batch = 32, .seed = 3},
        data::LoaderOptions{.batch = 128, .workers = 2, .seed = 9, .start_sample = 777},
        data::LoaderOptions{.batch = 64, .seed = 3, .epoch_end = data::EpochEnd::kShort, .rank = 1, .world = 3}}) {
    const std::vector<at::Tensor> plain = stream(source, false, options);
    const std::vector<at::Tensor> held = stream(source, true, options);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ(plain[i].scalar_type(), held[i].scalar_type());
      ASSERT_TRUE(at::equal(plain[i].view(at::kShort), held[i].view(at::kShort))) << "batch " << i;
    }
  }
}

TEST(DeviceRows, RefuseSamplesThatChange) {
  try {
    const DeviceRows rows(PointSource(), at::kCPU, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_EQ(error.subject(), "data.on_device");
    EXPECT_THAT(error.message(), HasSubstr("differ from epoch to epoch"));
  }
}

/// Larger than any machine's memory; never read.
class HugeRows final : public data::Source {
 public:
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return std::int64_t{1} << 40; }
  bool same_every_epoch() const override { return true; }
  std::uint64_t read(const data::ItemRequest&, std::span<const data::Places>) const override { return 0; }

 private:
  std::vector<data::Field> fields_{{"x", data::DType::kF32, {1024}}};
};

TEST(DeviceRows, WhatDoesNotFitIsRefusedBeforeItIsRead) {
  try {
    const DeviceRows rows(HugeRows(), at::kCPU, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(error.hint(), HasSubstr("data.on_device"));
  }
}

}  // namespace
}  // namespace unidle::train
