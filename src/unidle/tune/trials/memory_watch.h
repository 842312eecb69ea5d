// Ending a trial before it takes all memory of the machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <thread>

#include "unidle/base/files.h"

namespace unidle::tune {

/// What may still be taken: of the machine, or of this job's cgroup when that is less. Nothing when neither is known.
std::optional<std::uint64_t> memory_left(const std::filesystem::path& root = host_root());
/// Below this a trial is ended: a twentieth of what the job may have, at least 256 MiB and at most 4 GiB.
std::uint64_t memory_to_keep(const std::filesystem::path& root = host_root());

/// Looks four times a second while it lives, and asks `ending` to stop once too little memory is left. `ending` must
/// outlive it.
class MemoryWatch {
 public:
  explicit MemoryWatch(std::stop_source& ending);
  /// It asked for the end.
  bool tripped() const { return tripped_; }

 private:
  std::atomic<bool> tripped_ = false;
  std::jthread thread_;
};

}  // namespace unidle::tune
