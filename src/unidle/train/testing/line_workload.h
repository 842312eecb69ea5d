// A workload small enough for tests: fit y = w x + b to noisy points.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "unidle/train/workload.h"

namespace unidle::train::testing {

/// Points whose values are a function of (seed, epoch, item).
class PointSource : public data::Source {
 public:
  PointSource();
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return 12; }
  std::uint64_t read(const data::ItemRequest& request, std::span<const data::Places> samples) const override;

 private:
  std::vector<data::Field> fields_;
};

/// Two layers without batch statistics, so that accumulation is exact up to rounding.
class LineWorkload : public Workload {
 public:
  LineWorkload();
  const data::Source& source() const override { return source_; }
  std::vector<FieldUse> field_uses() const override { return {FieldUse::kRaw, FieldUse::kRaw}; }
  torch::nn::Module& model() override { return *model_; }
  at::Tensor loss(const std::vector<at::Tensor>& fields) override;
  std::map<std::string, double> validate() override;
  std::int64_t validation_samples() const override { return 1; }
  Effective effective() const override { return {}; }

  int validations = 0;
  /// Every loss that was computed, in order.
  std::vector<double> losses;

 private:
  PointSource source_;
  std::shared_ptr<torch::nn::Module> model_;
  at::Tensor weight1_, bias1_, weight2_;
};

}  // namespace unidle::train::testing
