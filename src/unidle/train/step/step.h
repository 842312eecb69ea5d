// One optimiser step: forward and backward of its micro-batches, then the update.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "unidle/train/config.h"
#include "unidle/train/events.h"
#include "unidle/train/fuse/fused_loss.h"
#include "unidle/train/input/input.h"
#include "unidle/train/ranks/ranks.h"
#include "unidle/train/step/device_timer.h"
#include "unidle/train/step/ema.h"
#include "unidle/train/step/optimizer.h"
#include "unidle/train/step/precision.h"
#include "unidle/train/step/schedule.h"
#include "unidle/train/step/step_graphs.h"
#include "unidle/train/workload.h"

namespace unidle::train {

/// Owns what a step changes and the state between steps. The host never waits for the device in a step, except in the
/// unfused update when gradients are checked. One thread.
class Step {
 public:
  /// All references must outlive this, and so must `ranks` (null for a single process), `capture` (null when the device
  /// has none) and `stop`, which ends a compilation (null when nothing does).
  Step(Workload& workload, const Config& config, at::Device device, Events& events, std::int64_t total_steps,
       Ranks* ranks, GraphCapture* capture, const std::atomic<bool>* stop = nullptr);

  /// Reads `accumulation` batches from `input` and updates the weights. Returns this process's mean loss, detached, on
  /// the device. When it throws before the update, call drop_gradients() to be able to repeat the step.
  at::Tensor run(Input& input, std::int64_t accumulation, std::int64_t number);
  void drop_gradients();
  /// Call when the shapes of steps change: existing graphs are useless.
  void drop_graphs() {
    graphs_.drop_graphs();
    moved_.clear();  // they refer to memory of the input
  }
  /// Call when there is not enough memory for the step and its graphs.
  void give_up_graphs() {
    graphs_.give_up("there is no memory for it beside steps of other shapes");
    moved_.clear();
  }

  const StepGraphs& graphs() const { return graphs_; }
  /// compile.mode in force.
  std::string compile_mode() const { return fused_.on() ? "fused" : graphs_.on() ? "graph" : "off"; }
  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  Precision& precision() { return precision_; }
  const Precision& precision() const { return precision_; }
  AveragedWeights& averaged() { return averaged_; }
  const AveragedWeights& averaged() const { return averaged_; }
  const Schedule& schedule() const { return schedule_; }
  /// Whether the last exception came from the update, which may then be partially done.
  bool updating() const { return updating_; }
  DeviceTimer& device_timer() { return timer_; }
  /// Total time that steps have waited for data.
  std::uint64_t input_wait_ns() const { return input_wait_ns_; }

 private:
  StepGraphs::Work graph_work();
  /// The next micro-batch, on the device.
  const std::vector<at::Tensor>& next_batch(Input& input);
  /// A whole step of `count` micro-batches. Calls `fields_of(i)` after micro-batch i - 1 is done.
  template <typename FieldsOf>
  at::Tensor learn(std::int64_t count, const FieldsOf& fields_of);
  at::Tensor learn_from(const std::vector<at::Tensor>& fields, std::int64_t count, bool last);
  /// The loss of fields whose gradients a package or the workload computes without a graph; otherwise undefined, with
  /// nothing done.
  at::Tensor learn_without_graph(const std::vector<at::Tensor>& fields, std::int64_t count);
  at::Tensor run_as_it_is(Input& input, std::int64_t count);
  at::Tensor run_captured(Input& input, std::int64_t count);
  void require_gradients();
  void require_loss(const at::Tensor& loss);
  void update();

  Workload& workload_;
  Events& events_;
  Ranks* ranks_;
  double clip_norm_;
  bool zero_to_none_;
  Precision precision_;
  std::unique_ptr<Optimizer> optimizer_;
  Schedule schedule_;
  AveragedWeights averaged_;
  FusedLoss fused_;
  StepGraphs graphs_;
  DeviceTimer timer_;
  const Input* input_ = nullptr;  // of the current step
  StepFields moved_;              // its batches, when the step may be captured
  std::uint64_t number_ = 0;
  bool updating_ = false;
  bool all_have_gradients_ = false;
  bool loss_is_checked_ = false;
  std::uint64_t input_wait_ns_ = 0;
};

}  // namespace unidle::train
