// Ends a trial before it takes all of the machine's memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <thread>

#include "unidle/base/files.h"

namespace unidle::tune {

/// Memory still available: on the machine, or in this job's cgroup when that is less. Nothing when neither is known.
std::optional<std::uint64_t> memory_left(const std::filesystem::path& root = host_root());
/// A trial is ended when less is available: a twentieth of the job's limit, at least 256 MiB and at most 4 GiB.
std::uint64_t memory_to_keep(const std::filesystem::path& root = host_root());

/// Checks four times a second during its lifetime, and requests a stop of `ending` when too little memory is available.
/// `ending` must outlive it.
class MemoryWatch {
 public:
  explicit MemoryWatch(std::stop_source& ending);
  /// True when it has requested the stop.
  bool tripped() const { return tripped_; }

 private:
  std::atomic<bool> tripped_ = false;
  std::jthread thread_;
};

}  // namespace unidle::tune
