// What the trainer reports: through the probe, and to TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/data/loader.h"
#include "unidle/probe/unidle_probe.h"
#include "unidle/train/config.h"
#include "unidle/train/device_facts.h"
#include "unidle/train/tensorboard.h"
#include "unidle/train/workload.h"

namespace unidle::train {

struct ModelFacts {
  std::int64_t parameters = 0;
  bool convolutions = false;
  bool depthwise = false;  // convolutions with as many groups as channels
};

/// Owns this process's probe; every call is cheap and does nothing when the run is not observed. One thread.
class Events {
 public:
  Events();
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  bool observed() const { return probe_ != nullptr; }
  /// Starts curves for TensorBoard, in a file in `folder`. Throws kIo when it cannot be created.
  void draw_in(const std::filesystem::path& folder) { tensorboard_ = std::make_unique<Tensorboard>(folder); }

  static std::uint64_t now_ns() { return unidle_probe_now_ns(); }

  /// Begins a step. Until it ends, times of the same part add up.
  void begin_step(std::uint64_t step);
  /// The time from `start_ns` until now belongs to one of UNIDLE_STEP_INPUT to UNIDLE_STEP_SYNC. Ignored outside of
  /// steps.
  void part(unidle_step_field part, std::uint64_t start_ns);
  /// Memory was flushed from `start_ns` until now.
  void flush(std::uint64_t start_ns);
  void end_step(std::int64_t samples, std::int64_t micro_batches);
  /// Anything that is not a step, from `start_ns` until now.
  void span(unidle_event_kind kind, std::uint64_t start_ns, std::uint64_t step, std::int64_t samples = 0);
  /// How long the device worked on a step that the host began at `t_ns`, and the time since the end of the step before,
  /// which is 0 when unknown.
  void device_time(std::uint64_t step, std::uint64_t t_ns, std::uint64_t work_ns, std::uint64_t period_ns);
  void loss(std::uint64_t step, std::uint64_t samples_before, double value);
  /// The run begins after `steps` steps.
  void begin(std::uint64_t steps, std::uint64_t samples);
  /// Call when losses have been read.
  void pace(const Pace& now);
  /// Reports how each sample of the batch was made.
  void samples(const data::Batch& batch, std::uint64_t step);
  /// Reports the time from the start of the process until now.
  void startup();

  /// Notes each setting twice: as configured, with its place, and as in force. A knob missing from `effective` has only
  /// the first note.
  void settings(const Config& config, const Effective& effective);
  /// Notes the settings that nothing reads, with their places; nothing for an empty list.
  void unread(const Config& config, const std::vector<const Setting*>& settings);
  /// Calls that stall the loop (`call`: item, empty_cache), the setting that causes them, and their count and time in
  /// the run so far.
  void calls(std::string_view call, const std::string& where, std::int64_t count, std::uint64_t ns);
  /// The device; of the steps at whose end it was checked, in how many it had kept up with the host. Counts of the run
  /// so far.
  void device(int index, const DeviceFacts& facts, std::int64_t looked_at, std::int64_t kept_up);
  void metric(std::string_view name, double value, std::uint64_t step, std::uint64_t samples);
  void model(const ModelFacts& facts);
  /// The number of samples in one epoch of the training data.
  void data(std::int64_t samples_per_epoch);
  /// The result of a profiler window.
  void trace(nlohmann::json note);
  /// The time that the loader's threads spent in each stage. Call once, at the end.
  void stages(const data::LoaderWork& work);

 private:
  void emit(unidle_event_kind kind, std::uint64_t t_ns, std::uint64_t duration_ns, std::uint64_t step, std::uint64_t a,
            double value = 0);

  unidle_probe* probe_;
  unidle_step step_{};  // the current step
  bool in_step_ = false;
  std::unique_ptr<Tensorboard> tensorboard_;  // only on request
};

}  // namespace unidle::train
