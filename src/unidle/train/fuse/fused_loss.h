// Compiles the loss and its gradients into one package, which is trusted once it matches the workload's own loss.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "unidle/train/fuse/package_maker.h"
#include "unidle/train/step/precision.h"
#include "unidle/train/workload.h"

namespace torch::inductor {
class AOTIModelPackageLoader;
}

namespace unidle::train {

/// Has a package for each of the first few shapes of micro-batches. After any fault in one of them, none is used again.
/// One thread.
class FusedLoss {
 public:
  /// `workload` and `precision` must outlive this. `against`: the reason for using no packages; empty to use them.
  FusedLoss(Workload& workload, const Precision& precision, at::Device device, std::string against,
            const std::atomic<bool>* stop);
  ~FusedLoss();
  FusedLoss(const FusedLoss&) = delete;
  FusedLoss& operator=(const FusedLoss&) = delete;

  /// Adds `share` times the gradients (scaled with fp16) to those of the parameters and returns `share` times the loss,
  /// without a graph. Returns an undefined tensor and does nothing when these fields have no trusted package: at the
  /// first two occurrences of a shape, for shapes beyond the limit, and always after a fault. Compiles at the second
  /// occurrence of a shape, which may take minutes, and compares at the third, which waits for the device. Throws when
  /// memory runs out.
  at::Tensor learn(const std::vector<at::Tensor>& fields, double share);

  /// Whether packages are used or may be later.
  bool on() const { return reason_.empty(); }
  /// The reason when not.
  const std::string& reason() const { return reason_; }
  /// Micro-batches computed by a package.
  std::int64_t runs() const { return runs_; }
  /// Shapes for which compilation was attempted.
  std::int64_t prepared() const { return prepared_; }

 private:
  struct Package;
  /// Loss and gradients, in the order of the parameters; undefined for parameters without gradient.
  struct Learned {
    at::Tensor loss;
    std::vector<at::Tensor> gradients;
  };
  /// The state that computing the loss changes.
  struct State {
    std::vector<at::Tensor> others;
    at::Tensor random;
  };

  Package* package_for(const std::vector<at::Tensor>& fields);
  void tell_of_many_shapes();
  bool prepare(Package& package, const std::vector<at::Tensor>& fields);
  void load(Package& package, const std::vector<at::Tensor>& fields);
  /// Describes the fault of the package; empty when there is none.
  std::string compare(const Package& package, const std::vector<at::Tensor>& fields, const State& before);
  Learned run(const Package& package, const std::vector<at::Tensor>& fields, const at::Tensor& factor) const;
  Learned run_plain(const std::vector<at::Tensor>& fields);
  at::Tensor factor(double share);
  void add(std::vector<at::Tensor>& gradients);
  State state() const;
  void put_back(const State& state) const;
  void give_up(std::string reason);

  Workload& workload_;
  const Precision& precision_;
  at::Device device_;
  std::string reason_;
  PackageMaker maker_;
  std::vector<at::Tensor> parameters_;  // those that require gradients
  std::vector<at::Tensor> others_;
  std::vector<std::unique_ptr<Package>> packages_;
  double share_ = 0;
  at::Tensor share_on_device_;
  std::int64_t runs_ = 0;
  std::int64_t prepared_ = 0;
  bool told_of_many_shapes_ = false;
};

}  // namespace unidle::train
