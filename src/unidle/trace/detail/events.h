// Reads Chrome trace JSON as a stream of events.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unidle/logs/source.h"

namespace unidle::trace::detail {

constexpr double kSecondsPerUs = 1e-6;
constexpr std::size_t kMostArguments = 256;  // of an operator; an LSTM of many layers has that many weights

/// A slice, whether the trace writes it as one event (ph "X") or as its begin and end (ph "B", "E"); times in
/// microseconds. Strings are valid during the call only.
struct TraceEvent {
  std::string name;
  std::string category;
  std::string phase;
  std::string process;  // "pid" as written
  std::string thread;   // "pid/tid" as written
  std::string device;   // args.device
  std::optional<double> begin_us;
  std::optional<double> duration_us;
  std::optional<double> bytes;              // args.bytes
  std::optional<std::int64_t> correlation;  // args.correlation: a call and the device work that it started share it
  // Of operators that has_flops() knows, when the profiler recorded shapes: args "Input Dims", in which a list of
  // tensors has an empty shape before its own, "Input type" and "Concrete Inputs". A size that is no number is NaN.
  std::vector<std::vector<double>> shapes;
  std::vector<std::string> types;
  std::vector<std::string> values;

  void clear();
};

/// One entry of deviceProperties, or a process that is named after a device.
struct TraceDevice {
  std::string name;
  std::string process;  // the process's name; the other fields are empty then
  std::string id;       // as events write their device; empty when the entry has none
  std::optional<double> memory;
  std::optional<std::int64_t> major;
  std::optional<std::int64_t> minor;
};

/// Calls `on_event` for each event and `on_device` for each device. Returns the rank when the trace has it. Throws
/// kInput (subject: the source's name) when the text is not JSON, is cut off, or has no traceEvents.
std::optional<std::int64_t> for_each_event(logs::Source& source, const std::function<void(const TraceEvent&)>& on_event,
                                           const std::function<void(const TraceDevice&)>& on_device);

/// Calls `on_event` with each event unchanged, whatever its phase. Throws as for_each_event() does.
void for_each_raw_event(logs::Source& source, const std::function<void(nlohmann::json&)>& on_event);

}  // namespace unidle::trace::detail
