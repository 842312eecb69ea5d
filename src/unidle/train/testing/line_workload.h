// A workload small enough for tests: fit y = w x + b to noisy points.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "unidle/train/workload.h"

namespace unidle::train::testing {

/// Points whose values depend on the item and, unless they are to be constant, on the epoch.
class PointSource : public data::Source {
 public:
  explicit PointSource(bool same_every_epoch = false);
  bool same_every_epoch() const override { return same_; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::int64_t items() const override { return 12; }
  std::uint64_t read(const data::ItemRequest& request, std::span<const data::Places> samples) const override;

  /// The item whose x is NaN; none by default.
  std::int64_t not_finite = -1;

 private:
  bool same_;
  std::vector<data::Field> fields_;
};

/// Two layers without batch statistics, so that accumulation is exact up to rounding.
class LineWorkload : public Workload {
 public:
  /// With `holds_out`, points are validated in batches and are the same in every epoch; otherwise they are validated
  /// one by one, with the values of the first epoch.
  explicit LineWorkload(bool holds_out = false);
  const data::Source& source() const override { return source_; }
  std::vector<FieldUse> field_uses() const override { return {FieldUse::kRaw, FieldUse::kRaw}; }
  torch::nn::Module& model() override { return *model_; }
  at::Tensor loss(const std::vector<at::Tensor>& fields) override;
  at::Tensor learn(const std::vector<at::Tensor>& fields, double share) override;
  const data::Source* held_out() const override { return holds_out_ ? &source_ : nullptr; }
  /// Sum of squared errors, samples.
  at::Tensor metric_sums(const std::vector<at::Tensor>& fields) override;
  std::int64_t validation_samples() const override { return holds_out_ ? 0 : most_validated; }
  at::Tensor metric_sums_of(std::int64_t sample) override;
  std::map<std::string, double> metrics(const std::vector<double>& sums) const override;
  Effective effective() const override { return {}; }

  PointSource& points() { return source_; }

  /// Batches with more samples fail for lack of memory; 0: no limit.
  std::int64_t most_samples = 0;
  /// Size of the noise in the loss, from torch's generator.
  double noise = 1e-3;
  /// Number of points that are validated one by one.
  std::int64_t most_validated = 12;
  /// The samples passed to metric_sums_of(), in order.
  std::vector<std::int64_t> validated;
  /// Provides gradients itself instead of a graph.
  bool without_graph = false;
  /// Every computed loss, in order.
  std::vector<double> losses;
  /// Sizes of the batches passed to metric_sums().
  std::vector<std::int64_t> batch_sizes;

 private:
  bool holds_out_;
  PointSource source_;
  std::shared_ptr<torch::nn::Module> model_;
  at::Tensor weight1_, bias1_, weight2_;
};

}  // namespace unidle::train::testing
