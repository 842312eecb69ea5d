// The training loop.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unidle/train/checkpoints/checkpoint_folder.h"
#include "unidle/train/config.h"
#include "unidle/train/evaluation.h"
#include "unidle/train/events.h"
#include "unidle/train/input/input.h"
#include "unidle/train/loss_meter.h"
#include "unidle/train/ranks/ranks.h"
#include "unidle/train/step/step.h"
#include "unidle/train/summary.h"
#include "unidle/train/workload.h"

namespace unidle::train {

/// A run's progress.
struct Progressed {
  std::int64_t samples = 0;
  std::int64_t total = 0;
  std::optional<double> loss;       // the last one that was read
  std::uint64_t input_wait_ns = 0;  // total time that this process has waited for data
};

struct TrainOptions {
  std::optional<std::filesystem::path> resume;  // a checkpoint, or its folder
  /// Checked after every step; when true the run ends there, with a checkpoint if those are on.
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const Progressed&)> on_progress;  // after every step
  Ranks* ranks = nullptr;                              // the other processes of the run, if any
  GraphCapture* capture = nullptr;                     // of the device, for compile.mode: graph
  std::optional<std::string> numa;                     // cpu.numa in force; nothing when it makes no difference
};

/// Trains `workload` as `config` says. The code is the same for every device; torch handles the differences. One
/// thread.
class Trainer {
 public:
  /// `workload` and `events` must outlive the trainer.
  Trainer(Workload& workload, const Config& config, at::Device device, Events& events, TrainOptions options);

  /// Call once. Throws what the source, the device or a checkpoint throws, and kInput or kCancelled when the loss is
  /// not finite and train.on_nan is stop.
  Summary run();

  /// The knobs in force, read from the live objects.
  Effective effective() const;

 private:
  bool stop_requested() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }
  int rank() const { return options_.ranks != nullptr ? options_.ranks->rank() : 0; }
  int world() const { return options_.ranks != nullptr ? options_.ranks->world() : 1; }
  /// Summed over all processes.
  std::int64_t samples_per_step() const { return batch_ * accumulation_ * world(); }
  /// This process's part of the stream of batches, starting at `samples`.
  data::LoaderOptions loader_options(std::int64_t samples) const;
  LiveState live_state();
  void open_input();
  void note_start();
  void note_settings();
  void loop();
  void step();
  at::Tensor run_step();
  /// Makes micro-batches smaller and more numerous. REQUIRES: they have more than one sample.
  void shrink_batch();
  void read_losses();
  void flush();
  /// Reports the calls that stall the loop.
  void note_calls();
  void note_device();
  /// REQUIRES: there are several processes.
  [[noreturn]] void refuse_to_shrink() const;
  /// Averages losses over all processes, which also agree on whether to stop.
  void combine(at::Tensor& losses);
  /// Copies the first process's weights and buffers to all.
  void share_model();
  void check_finite(double loss, const Position& at);
  [[noreturn]] void stop_for(double loss, const Position& at);
  /// Whether the position has crossed a multiple of `interval` samples since `before`, and the run goes on.
  bool passed(std::int64_t interval, std::int64_t before) const;
  void validate();
  std::map<std::string, double> evaluate();
  void save();
  /// Runs `work` between steps; its time is not part of the loop's.
  template <typename Work>
  void aside(const Work& work);
  void start_clock_when_warm();
  Summary summarise(bool stopped) const;

  Workload& workload_;
  const Config& config_;
  at::Device device_;
  Events& events_;
  TrainOptions options_;

  std::int64_t batch_;
  std::int64_t accumulation_;
  std::int64_t total_;  // samples of the whole run, in whole steps
  Step step_;
  LossMeter losses_;
  Position position_;
  Position read_up_to_;            // steps whose loss has been read
  std::int64_t first_sample_ = 0;  // where this process started
  bool stopping_ = false;
  struct Calls {
    std::int64_t count = 0;
    std::uint64_t ns = 0;
  };
  Calls reads_;
  Calls flushes_;
  int losses_not_finite_ = 0;  // consecutive
  std::unique_ptr<Input> input_;
  Evaluation evaluation_;
  std::optional<CheckpointFolder> checkpoints_;
  std::optional<DeviceFacts> device_facts_;  // when the run is observed
  std::vector<const Setting*> unread_;       // given settings that the workload does not read

  // Nanoseconds of CLOCK_MONOTONIC.
  std::uint64_t start_ns_ = 0;
  std::uint64_t warm_ns_ = 0;
  std::uint64_t loop_end_ns_ = 0;
  std::uint64_t end_ns_ = 0;
  std::uint64_t aside_ns_ = 0;  // in validation and checkpoints since warm-up
  std::int64_t warm_samples_ = 0;
  std::map<std::string, double> metric_;
};

}  // namespace unidle::train
