// Losses that stay on the device until they are read.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <vector>

namespace unidle::train {

/// Collects one loss per step and reads them back together: the host does not wait between two reads. Not thread-safe.
class LossMeter {
 public:
  explicit LossMeter(std::int64_t interval) : interval_(interval) {}

  /// `loss`: the step's mean loss, detached, on the device.
  void add(const at::Tensor& loss) { pending_.push_back(loss); }
  bool due() const { return static_cast<std::int64_t>(pending_.size()) >= interval_; }
  /// All losses since the last read; waits for the device. Empty when there are none. `combine` first gets them, as one
  /// vector on the host, and may change them.
  std::vector<double> read(const std::function<void(at::Tensor&)>& combine) {
    std::vector<double> values;
    if (!pending_.empty()) {
      at::Tensor host = at::stack(pending_).to(at::kCPU, at::kDouble).contiguous();
      combine(host);
      const double* first = host.const_data_ptr<double>();
      values.assign(first, first + host.numel());
      pending_.clear();
      first_ = first_.value_or(values.front());
      last_ = values.back();
    }
    return values;
  }
  /// Nothing before the first read.
  std::optional<double> first() const { return first_; }
  std::optional<double> last() const { return last_; }

 private:
  std::int64_t interval_;
  std::vector<at::Tensor> pending_;
  std::optional<double> first_;
  std::optional<double> last_;
};

}  // namespace unidle::train
