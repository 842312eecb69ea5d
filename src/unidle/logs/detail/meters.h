// What a program states about its steps in a line: "Time 0.512 ( 0.530)", "data_time: 0.01", "3.2 it/s", "tok/sec:
// 1500".
#pragma once

#include <optional>
#include <string_view>

namespace unidle::logs::detail {

/// A duration after a word, in seconds: "Time  0.512 ( 0.530)", "Time: 0.5s, 128.0/s (0.6s, 106.7/s)", "elapsed time
/// per iteration (ms): 512.3", "time 512.3ms", "batch_cost: 0.5 sec". A number without a unit is in seconds.
struct Meter {
  double value_s = 0;
  std::optional<double> average_s;      // in parentheses after it: over all steps of the epoch so far
  std::optional<double> samples_per_s;  // timm and OpenCLIP print it after the time
  bool in_ms = false;
};

/// Nothing if no number follows, or for a clock ("0:10:00"), which is not the time of one step.
std::optional<Meter> meter_after(std::string_view line, std::size_t end);

/// The value of the unit at [begin, end): after it if the unit is a key ("img/s: 64.0", "global_step/sec: 3.5"),
/// otherwise before it ("64.0 img/s"). A rate per device ("12 img/sec per GPU") is returned only if `per_device` is
/// given, which is then set.
std::optional<double> rate_beside(std::string_view line, std::size_t begin, std::size_t end,
                                  bool* per_device = nullptr);
/// The same for a key that continues with letters: "samples_per_second", "tokens_per_second_per_gpu".
std::optional<double> rate_after(std::string_view line, std::size_t begin, std::size_t end, bool* per_device = nullptr);

}  // namespace unidle::logs::detail
