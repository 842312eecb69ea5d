// Formats of programs that watch GPUs: one file each in gpu_formats/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unidle/logs/gpu_log.h"
#include "unidle/logs/source.h"

namespace unidle::logs {

/// Immutable, hence thread-safe.
struct GpuFormat {
  std::string_view program;  // that writes this format, for messages: "nvidia-smi dmon"
  /// Whether the start of a file (at most 64 KiB, without a byte order mark) is of this format.
  bool (*matches)(std::string_view head);
  /// Reads the whole file. Throws kInput when it holds no sample, unless `window` excluded all.
  GpuLog (*read)(Source& source, const Window& window);
  std::string_view device_kind = "cuda";  // of the GPUs
};

/// In the order of their file names.
const std::vector<const GpuFormat*>& all_gpu_formats();

/// nullptr when no format matches.
const GpuFormat* gpu_format_of(std::string_view head);

/// The programs, for messages: "dcgmi dmon, nvidia-smi dmon".
std::string gpu_programs();

}  // namespace unidle::logs
