// TensorBoard's event files: curves of a run, for those who look at them there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "unidle/base/disk.h"
#include "unidle/base/handle.h"

namespace unidle::train {

/// How far a run is, and how fast it goes.
struct Pace {
  std::uint64_t steps = 0;  // done
  std::uint64_t samples = 0;
  std::uint64_t input_wait_ns = 0;  // in all
  double learning_rate = 0;         // of the last step
};

/// One event file, with what a run is asked for by the names train/loss, train/samples_per_s, train/input_wait (share
/// of the time, 0..1), train/learning_rate and validation/METRIC. Kept in memory and written once a second. A disk that
/// refuses ends the curves with one warning, and never the run. One thread.
class Tensorboard {
 public:
  /// Makes `folder` and a new file in it. Throws kIo naming what could not be made. `disk` must outlive this.
  explicit Tensorboard(const std::filesystem::path& folder, Disk& disk = system_disk());
  ~Tensorboard();
  Tensorboard(const Tensorboard&) = delete;
  Tensorboard& operator=(const Tensorboard&) = delete;

  /// The run begins after so many steps. Where that is more than none, it goes on from a checkpoint: what earlier files
  /// of the folder tell of later steps is void.
  void begin(std::uint64_t steps, std::uint64_t samples);
  /// Of the last of so many steps; and so the others.
  void loss(std::uint64_t steps, double value);
  void metric(std::string_view name, std::uint64_t steps, double value);
  /// Rates since the last call that was a second ago or more; others do nothing.
  void pace(const Pace& now);
  void write_out();

  const std::filesystem::path& path() const { return path_; }

 private:
  void scalar(std::string_view tag, std::uint64_t steps, double value);
  /// With its length and checksums around it.
  void add(std::string_view event);

  std::filesystem::path path_;
  Disk& disk_;
  UniqueFd file_;  // none any more after a failure
  std::string waiting_;
  std::int64_t written_ns_;
  Pace last_;
  std::int64_t last_ns_;
};

}  // namespace unidle::train
