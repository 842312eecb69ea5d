// A whole record as a Chrome trace, for Perfetto (https://ui.perfetto.dev) and chrome://tracing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unidle/record/record.h"

namespace unidle::trace {

/// A moment to mark across all tracks.
struct Instant {
  std::int64_t t_ns = 0;  // CLOCK_MONOTONIC
  std::string name;
  nlohmann::json details;
};

struct Timeline {
  std::uint64_t events = 0;
  std::vector<std::string> left_out;  // profiler windows that could not be merged in, and why
};

/// Writes phases and steps with their parts as slices per process, series and metrics as counters, exceptions and
/// `instants` as instants, and the events of profiler windows on the same clock. Zero is the begin of the record.
/// Replaces `to` atomically; compresses when the name ends in .gz. Memory does not grow with profiler windows. Throws
/// kIo (subject: `to`).
Timeline write_timeline(const record::Reader& record, const std::vector<Instant>& instants,
                        const std::filesystem::path& to);

}  // namespace unidle::trace
