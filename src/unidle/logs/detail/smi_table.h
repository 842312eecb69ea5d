// Reads the table that plain `nvidia-smi` prints, inside the output of a job.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unidle/logs/gpu_log.h"

namespace unidle::logs::detail {

/// Receives lines in order; not thread-safe.
class SmiTable {
 public:
  /// "|   0  NVIDIA A30    On  |   00000000:61:00.0 Off |  0 |": the row that names a GPU.
  void name_row(std::string_view line);
  /// "| N/A   32C    P0   29W /  165W |       1MiB /  24576MiB |      0%      Default |", the row after it.
  void use_row(std::string_view line, std::optional<std::int64_t> t_ns, GpuLog& log);

 private:
  std::string id_;
  std::string name_;
};

}  // namespace unidle::logs::detail
