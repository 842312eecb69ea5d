// The only interface between the engine and a workload.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "unidle/data/source.h"
#include "unidle/train/config.h"
#include "unidle/traits/workload.h"

namespace unidle::train {

/// How a field of the source is passed to the loss. kPicture: u8 [h, w, c] becomes float [n, c, h, w] in 0..1, in the
/// memory format of layout.channels_last. kRaw: unchanged, [n, shape...].
enum class FieldUse { kRaw, kPicture };

/// Knob names and values in force, as the engine writes them into its record; account::KnobReadings reads them back.
using Effective = std::map<std::string, std::string>;

/// One training task: data, model, loss and metrics. Used from the training thread only; its sources from many threads.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual const data::Source& source() const = 0;
  /// One entry per field of source().
  virtual std::vector<FieldUse> field_uses() const = 0;
  /// On the device; in training mode between calls.
  virtual torch::nn::Module& model() = 0;
  /// Mean loss over the batch: a scalar with a graph. With compile.mode graph, fused or auto it is called a few times
  /// and then replayed: numbers that change from step to step must be device tensors (buffers of the model), not host
  /// variables or host random numbers.
  virtual at::Tensor loss(const std::vector<at::Tensor>& fields) = 0;
  /// For a model that computes its gradients without a graph: adds `share` times the gradients of loss() to those of
  /// model().parameters() and returns the loss, a scalar without a graph. Undefined when these fields need loss().
  virtual at::Tensor learn(const std::vector<at::Tensor>& fields, double share);

  /// Held-out data with the fields of source(), or null when samples differ in shape and cannot share a batch: see
  /// metric_sums_of().
  virtual const data::Source* held_out() const { return nullptr; }
  /// The sums from which metrics are computed, over the batch: [k], on the device, of any type; the sums of all batches
  /// are added in double. One of them is the count. Called in evaluation mode, without graph. REQUIRES: held_out().
  virtual at::Tensor metric_sums(const std::vector<at::Tensor>& fields);
  /// Without held_out(): the number of held-out samples, and the sums of one sample, as above. Each process of a run
  /// evaluates its share.
  virtual std::int64_t validation_samples() const { return 0; }
  virtual at::Tensor metric_sums_of(std::int64_t sample);
  /// Computes metrics by name from the sums over all held-out data.
  virtual std::map<std::string, double> metrics(const std::vector<double>& sums) const;

  /// The workload's own knobs (model.width, ...), read back from its objects.
  virtual Effective effective() const = 0;
};

/// How the engine creates a workload.
struct WorkloadKind {
  const traits::Workload& traits;
  /// Throws kMissing, with the command to run, when the data has not been prepared.
  std::function<std::unique_ptr<Workload>(const Config& config, at::Device device)> open;
  /// Prepares the data; returns a description for people. Leaves nothing behind when it throws.
  std::function<std::string(const Config& config)> prepare;
  /// For a workload in a library: its own keys, in addition to those of settings.cpp.
  std::vector<Setting> settings = {};
};

/// The configured data folder, or data/WORKLOAD in unidle's home folder.
std::filesystem::path data_folder(const Config& config);
/// The same for checkpoints.
std::filesystem::path checkpoint_folder(const Config& config);

}  // namespace unidle::train
