// Formats in which other programs write about GPUs: one file each in gpu_formats/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/logs/gpu_log.h"
#include "unidle/logs/source.h"

namespace unidle::logs {

/// Thread-safe: nothing of it ever changes.
struct GpuFormat {
  std::string_view program;  // that writes it, for messages: "nvidia-smi dmon"
  /// Whether the begin of a file (64 KiB at most, without a byte order mark) is of this format.
  bool (*matches)(std::string_view head);
  /// All of a file. Throws kInput when no sample is in it, unless `window` left all of them out.
  GpuLog (*read)(Source& source, const Window& window);
  std::string_view device_kind = "cuda";  // of the GPUs
};

/// By file name.
const std::vector<const GpuFormat*>& all_gpu_formats();

/// nullptr when it is of none.
const GpuFormat* gpu_format_of(std::string_view head);

/// The programs, for messages: "dcgmi dmon, nvidia-smi dmon".
std::string gpu_programs();

}  // namespace unidle::logs
