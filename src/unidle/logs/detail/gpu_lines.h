// Reads the lines of GPU logs, for all formats.
#pragma once

#include <climits>
#include <cstdint>
#include <string>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/logs/gpu_log.h"
#include "unidle/logs/lines.h"

namespace unidle::logs::detail {

/// Whether `is_it` is true for a line of `text`.
template <typename Predicate>
bool any_line(std::string_view text, Predicate is_it) {
  Source source("", text);
  Lines lines(source);
  std::string_view line;
  while (lines.next(line)) {
    if (is_it(line)) {
      return true;
    }
  }
  return false;
}

/// Whether the line reports a fault of the driver or a GPU: "GPU is lost", "No devices were found".
bool is_complaint(std::string_view line);
/// Counts a complaint. Keeps the first one, with the time of the sample before it.
void complain(std::string_view line, GpuLog& log);

/// Passes each line to `Reader(log, window)`. Throws kInput when no sample was found, unless `window` excluded all;
/// `expected` names the rows that were searched for.
template <typename Reader>
GpuLog read_gpu_lines(Source& source, const Window& window, const std::string& expected) {
  GpuLog log;
  log.file = source.name();
  Reader reader(log, window);
  Lines lines(source);
  std::string_view line;
  while (lines.next(line)) {
    reader.read(line);
  }
  if constexpr (requires { reader.finish(); }) {
    reader.finish();
  }
  if (log.gpus.empty() && window.from_ns == INT64_MIN) {
    const std::string why = log.complaint ? "; nvidia-smi said: " + *log.complaint : "";
    throw Error(ErrorCode::kInput, source.name(), "no sample of a GPU is in it" + why, expected + " were expected");
  }
  return log;
}

}  // namespace unidle::logs::detail
