// What the trainer tells an observer: the probe, with the names of this engine, and TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

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

/// Owns this process's probe; every call is cheap and does nothing when nobody observes. One
/// thread.
class Events {
 public:
  Events();
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  bool observed() const { return probe_ != nullptr; }
  /// Curves for TensorBoard from now on, in a file in `folder`. Throws kIo when it cannot be made.
  void draw_in(const std::filesystem::path& folder) { tensorboard_ = std::make_unique<Tensorboard>(folder); }

  static std::uint64_t now_ns() { return unidle_probe_now_ns(); }

  /// A step begins. Until it ends, its parts add up.
  void begin_step(std::uint64_t step);
  /// One of UNIDLE_STEP_INPUT to UNIDLE_STEP_SYNC took the time from `start_ns` until now. Outside of steps it counts
  /// for none.
  void part(unidle_step_field part, std::uint64_t start_ns);
  /// Memory was flushed from `start_ns` until now.
  void flush(std::uint64_t start_ns);
  void end_step(std::int64_t samples, std::int64_t micro_batches);
  /// Something that is no step, from `start_ns` until now.
  void span(unidle_event_kind kind, std::uint64_t start_ns, std::uint64_t step, std::int64_t samples = 0);
  /// How long the device worked for a step that the host began at `t_ns`, of the time since the end of the step before;
  /// that is 0 where it is not known.
  void device_time(std::uint64_t step, std::uint64_t t_ns, std::uint64_t work_ns, std::uint64_t period_ns);
  void loss(std::uint64_t step, std::uint64_t samples_before, double value);
  /// The run begins after so many steps.
  void begin(std::uint64_t steps, std::uint64_t samples);
  /// When losses have been read.
  void pace(const Pace& now);
  /// How each sample of the batch was made.
  void samples(const data::Batch& batch, std::uint64_t step);
  /// From the start of the process until now.
  void startup();

  /// One note a setting: as configured, with its place, and as in force. A knob that `effective` lacks gets no
  /// second note.
  void settings(const Config& config, const Effective& effective);
  /// Calls that hold up the loop (`call`: item, empty_cache), and the setting that asks for them. All of the run so
  /// far.
  void calls(std::string_view call, const std::string& where, std::int64_t count, std::uint64_t ns);
  /// The device, and in how many of the steps at whose end it was looked at it had kept up with the host. All of the
  /// run so far.
  void device(int index, const DeviceFacts& facts, std::int64_t looked_at, std::int64_t kept_up);
  void metric(std::string_view name, double value, std::uint64_t step, std::uint64_t samples);
  void model(const ModelFacts& facts);
  /// How many samples one pass over the training data has.
  void data(std::int64_t samples_per_epoch);
  /// What became of a profiler window.
  void trace(nlohmann::json note);
  /// What the loader's threads spent their time on, by stage. Once, at the end.
  void stages(const data::LoaderWork& work);

 private:
  void emit(unidle_event_kind kind, std::uint64_t t_ns, std::uint64_t duration_ns, std::uint64_t step, std::uint64_t a,
            double value = 0);

  unidle_probe* probe_;
  unidle_step step_{};  // that is under way
  bool in_step_ = false;
  std::unique_ptr<Tensorboard> tensorboard_;  // on request
};

}  // namespace unidle::train
