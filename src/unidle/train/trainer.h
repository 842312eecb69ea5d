// The training loop.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "unidle/data/loader.h"
#include "unidle/train/checkpoint.h"
#include "unidle/train/config.h"
#include "unidle/train/events.h"
#include "unidle/train/loss_meter.h"
#include "unidle/train/optimizer.h"
#include "unidle/train/precision.h"
#include "unidle/train/summary.h"
#include "unidle/train/transfer.h"
#include "unidle/train/workload.h"

namespace unidle::train {

struct TrainOptions {
  std::optional<std::filesystem::path> resume;  // a checkpoint, or its folder
  /// Looked at after every step; when true the run ends there, with a checkpoint if those are on.
  const std::atomic<bool>* stop = nullptr;
  /// After every step: samples so far, samples in all, the last loss that was read.
  std::function<void(std::int64_t, std::int64_t, double)> on_progress;
};

/// Trains `workload` as `config` says. The same code on every device: what differs is asked of torch. One thread.
class Trainer {
 public:
  /// `workload` and `events` must outlive the trainer.
  Trainer(Workload& workload, const Config& config, at::Device device, Events& events, TrainOptions options);

  /// Once. Throws what the source, the device or a checkpoint throws.
  Summary run();

  /// The knobs as they are in force, read from the live objects.
  Effective effective() const;

 private:
  bool stopping() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }
  std::int64_t samples_per_step() const { return batch_ * accumulation_; }
  void step();
  data::Batch next_batch();
  at::Tensor micro_batch();
  void update();
  void read_losses();
  void validate_if_due(std::int64_t samples_before);
  void validate();
  void save_if_due(std::int64_t samples_before);
  void save();
  void start_clock_when_warm();
  Summary summarise(bool stopped) const;

  Workload& workload_;
  const Config& config_;
  at::Device device_;
  Events& events_;
  TrainOptions options_;

  std::int64_t batch_;
  std::int64_t accumulation_;
  std::int64_t total_;  // samples of the whole run, whole steps
  Precision precision_;
  AdamW optimizer_;
  LossMeter losses_;
  Position position_;
  std::int64_t first_sample_ = 0;  // where this process began
  std::int64_t read_up_to_ = 0;    // samples whose loss has been read

  std::unique_ptr<PinnedAllocator> pinned_;  // outlives the loader
  data::LoaderOptions loader_options_;
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<Transfer> transfer_;

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
