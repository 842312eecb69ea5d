// Writes TensorBoard event files: curves of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "unidle/base/disk.h"
#include "unidle/base/handle.h"

namespace unidle::train {

/// How far a run is, and its speed.
struct Pace {
  std::uint64_t steps = 0;  // done
  std::uint64_t samples = 0;
  std::uint64_t input_wait_ns = 0;  // in total
  double learning_rate = 0;         // of the last step
};

/// One event file with train/loss, train/samples_per_s, train/input_wait (share of the time, 0..1), train/learning_rate
/// and validation/METRIC. Buffered and written once a second. A write error ends the curves with one warning, never the
/// run. One thread.
class Tensorboard {
 public:
  /// Creates `folder` and a new file in it. Throws kIo naming what could not be created. `disk` must outlive this.
  explicit Tensorboard(const std::filesystem::path& folder, Disk& disk = system_disk());
  ~Tensorboard();
  Tensorboard(const Tensorboard&) = delete;
  Tensorboard& operator=(const Tensorboard&) = delete;

  /// The run begins after `steps` steps. When that is not 0, it resumes from a checkpoint: values for later steps in
  /// earlier files of the folder become void.
  void begin(std::uint64_t steps, std::uint64_t samples);
  /// `steps`: the number of steps done; the value is that of the last one. Likewise in metric().
  void loss(std::uint64_t steps, double value);
  void metric(std::string_view name, std::uint64_t steps, double value);
  /// Writes the rates since the last write; does nothing within a second of it.
  void pace(const Pace& now);
  void write_out();

  const std::filesystem::path& path() const { return path_; }

 private:
  void scalar(std::string_view tag, std::uint64_t steps, double value);
  /// Adds length and checksums around the event.
  void add(std::string_view event);

  std::filesystem::path path_;
  Disk& disk_;
  UniqueFd file_;  // empty after a failure
  std::string waiting_;
  std::int64_t written_ns_;
  Pace last_;
  std::int64_t last_ns_;
};

}  // namespace unidle::train
