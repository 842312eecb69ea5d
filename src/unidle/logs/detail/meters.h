// What a program states of its steps in a line: "Time 0.512 ( 0.530)", "data_time: 0.01", "3.2 it/s", "tok/sec: 1500".
#pragma once

#include <optional>
#include <string_view>

namespace unidle::logs::detail {

/// A duration behind a word, in seconds: "Time  0.512 ( 0.530)", "Time: 0.5s, 128.0/s (0.6s, 106.7/s)",
/// "elapsed time per iteration (ms): 512.3", "time 512.3ms", "batch_cost: 0.5 sec". A number without a unit is seconds.
struct Meter {
  double value_s = 0;
  std::optional<double> average_s;      // in parentheses behind it: of all steps of the epoch so far
  std::optional<double> samples_per_s;  // timm and OpenCLIP tell it behind the time
  bool in_ms = false;
};

/// Nothing where no number follows, and for a clock ("0:10:00"), which is no time of one step.
std::optional<Meter> meter_after(std::string_view line, std::size_t end);

/// The value of a unit at [begin, end): behind it where it stands as a key ("img/s: 64.0", "global_step/sec: 3.5"),
/// else before it ("64.0 img/s"). Nothing for what is told of one device of several ("12 img/sec per GPU") unless
/// `per_device` may learn of it.
std::optional<double> rate_beside(std::string_view line, std::size_t begin, std::size_t end,
                                  bool* per_device = nullptr);
/// The same for a key that goes on with letters: "samples_per_second", "tokens_per_second_per_gpu".
std::optional<double> rate_after(std::string_view line, std::size_t begin, std::size_t end, bool* per_device = nullptr);

}  // namespace unidle::logs::detail
