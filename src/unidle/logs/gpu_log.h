// What a log says about GPUs, whichever program wrote it (gpu_format.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/logs/source.h"

namespace unidle::logs {

/// Readings of one quantity. Without readings there is no mean: missing is not zero.
struct Readings {
  std::int64_t count = 0;
  double sum = 0;
  double least = 0;
  double most = 0;

  void add(double value) {
    least = count == 0 ? value : std::min(least, value);
    most = count == 0 ? value : std::max(most, value);
    sum += value;
    ++count;
  }
  void add(const std::optional<double>& value) {
    if (value) {
      add(*value);
    }
  }
  explicit operator bool() const { return count > 0; }
  double mean() const { return sum / static_cast<double>(count); }  // REQUIRES: count > 0
};

/// One row about one GPU. Fractions are 0..1, sizes bytes. `id` and `name` are valid only while the row is passed on.
struct GpuSample {
  std::string_view id;
  std::string_view name;
  std::optional<std::int64_t> t_ns;
  std::optional<double> utilisation;
  std::optional<double> memory_utilisation;  // fraction of time in which memory was read or written
  std::optional<double> memory_used;
  std::optional<double> memory_free;
  std::optional<double> memory_total;
  std::optional<double> power_w;
  std::optional<double> power_limit_w;
  std::optional<double> temperature_c;
  std::optional<double> sm_mhz;
  std::optional<double> sm_mhz_most;
  std::optional<double> link_gen;
  std::optional<double> link_gen_most;
  std::optional<double> link_width;
  std::optional<double> link_width_most;
  std::optional<bool> throttled;  // by heat or a hardware slow-down
};

/// All samples of one GPU.
struct GpuUse {
  std::string id;    // index, UUID or bus id, as written; without one "0", "1", ... in the order of rows
  std::string name;  // may be empty
  std::int64_t samples = 0;
  std::int64_t idle_samples = 0;  // utilisation read as zero
  std::optional<std::int64_t> first_ns;
  std::optional<std::int64_t> last_ns;
  std::int64_t longest_idle_ns = 0;
  Readings utilisation;
  Readings memory_utilisation;
  Readings memory_used;
  Readings memory_total;
  Readings power_w;
  Readings power_limit_w;
  Readings temperature_c;
  Readings sm_mhz;
  Readings sm_mhz_most;
  Readings link_gen;
  Readings link_gen_most;
  Readings link_width;
  Readings link_width_most;
  std::int64_t throttled_known = 0;
  std::int64_t throttled = 0;

  void add(const GpuSample& sample);

 private:
  std::optional<std::int64_t> idle_since_ns_;
};

struct GpuLog {
  std::string file;
  std::vector<GpuUse> gpus;  // in order of appearance
  std::int64_t samples = 0;
  std::int64_t broken_lines = 0;             // neither header nor sample
  std::optional<std::string> complaint;      // the first line in which the writing program reports a problem
  std::optional<std::int64_t> complaint_ns;  // the last time before that line
  std::int64_t complaints = 0;               // lines of that kind
  std::optional<std::int64_t> first_ns;
  std::optional<std::int64_t> last_ns;

  void add(const GpuSample& sample);
  /// The GPU with the highest utilisation; nullptr when none was read.
  const GpuUse* busiest() const;
};

/// Samples outside it are ignored.
struct Window {
  std::int64_t from_ns = INT64_MIN;
  std::int64_t to_ns = INT64_MAX;
  bool contains(const std::optional<std::int64_t>& t_ns) const { return !t_ns || (*t_ns >= from_ns && *t_ns <= to_ns); }
};

}  // namespace unidle::logs
