// The loss and its gradients as one compiled package, trusted once it gives what the workload's own loss gives.
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

/// Has a package for each of the first few shapes of micro-batches. Once anything is wrong with one, none is used any
/// more. One thread.
class FusedLoss {
 public:
  /// `workload` and `precision` must outlive this. `against`: why no package is to be used; empty unless none is to.
  FusedLoss(Workload& workload, const Precision& precision, at::Device device, std::string against,
            const std::atomic<bool>* stop);
  ~FusedLoss();
  FusedLoss(const FusedLoss&) = delete;
  FusedLoss& operator=(const FusedLoss&) = delete;

  /// Adds `share` times the gradients, scaled where fp16 is, to those of the parameters and returns `share` times the
  /// loss, without a graph. Undefined, with nothing done, where these fields have no package that is trusted: at
  /// the first two times of their shape, beyond the few shapes, and for good once anything went wrong. At the second
  /// time of a shape it compiles, which may take minutes. At the third it compares, which waits for the device. Throws
  /// when memory runs out.
  at::Tensor learn(const std::vector<at::Tensor>& fields, double share);

  /// Whether packages are used, or still may be.
  bool on() const { return reason_.empty(); }
  /// Why not.
  const std::string& reason() const { return reason_; }
  /// Micro-batches that went through a package.
  std::int64_t runs() const { return runs_; }
  /// Shapes that were compiled for, or tried to be.
  std::int64_t prepared() const { return prepared_; }

 private:
  struct Package;
  /// Loss and gradients, of the parameters in order; undefined for those that have none.
  struct Learned {
    at::Tensor loss;
    std::vector<at::Tensor> gradients;
  };
  /// What computing the loss changes.
  struct State {
    std::vector<at::Tensor> others;
    at::Tensor random;
  };

  Package* package_for(const std::vector<at::Tensor>& fields);
  void tell_of_many_shapes();
  bool prepare(Package& package, const std::vector<at::Tensor>& fields);
  void load(Package& package, const std::vector<at::Tensor>& fields);
  /// What is wrong with the package; empty when nothing is.
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
  std::vector<at::Tensor> parameters_;  // that learn
  std::vector<at::Tensor> others_;
  std::vector<std::unique_ptr<Package>> packages_;
  double share_ = 0;
  at::Tensor share_on_device_;
  std::int64_t runs_ = 0;
  std::int64_t prepared_ = 0;
  bool told_of_many_shapes_ = false;
};

}  // namespace unidle::train
