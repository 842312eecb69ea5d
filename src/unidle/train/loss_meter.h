// Losses that stay on the device until they are wanted.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

namespace unidle::train {

/// Collects one loss a step and reads them back together: between two reads the host never waits. Not thread-safe.
class LossMeter {
 public:
  explicit LossMeter(std::int64_t interval) : interval_(interval) {}

  /// `loss`: the step's mean loss, detached, on the device.
  void add(const at::Tensor& loss) { pending_.push_back(loss); }
  bool due() const { return static_cast<std::int64_t>(pending_.size()) >= interval_; }
  /// All losses since the last read; waits for the device. Empty when there are none.
  std::vector<double> read() {
    std::vector<double> values;
    if (!pending_.empty()) {
      const at::Tensor host = at::stack(pending_).to(at::kCPU, at::kDouble).contiguous();
      const double* first = host.const_data_ptr<double>();
      values.assign(first, first + host.numel());
      pending_.clear();
      first_ = first_.value_or(values.front());
      last_ = values.back();
    }
    return values;
  }
  double first() const { return first_.value_or(0); }
  double last() const { return last_; }

 private:
  std::int64_t interval_;
  std::vector<at::Tensor> pending_;
  std::optional<double> first_;
  double last_ = 0;
};

}  // namespace unidle::train
