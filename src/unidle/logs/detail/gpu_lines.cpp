#include "unidle/logs/detail/gpu_lines.h"

#include <array>

#include "unidle/base/substrings.h"

namespace unidle::logs::detail {

bool is_complaint(std::string_view line) {
  static constexpr std::array<std::string_view, 10> kComplaints = {
      "NVIDIA-SMI has failed",
      "couldn't communicate with the NVIDIA driver",
      "Failed to initialize NVML",
      "Unable to determine the device handle",
      "GPU is lost",
      "GPU requires reset",
      "GPU has fallen off the bus",
      "No devices were found",
      "No AMD GPUs",
      "Driver not initialized",
  };
  return contains_any(line, kComplaints);
}

void complain(std::string_view line, GpuLog& log) {
  constexpr std::size_t kLongest = 300;
  ++log.complaints;
  ++log.broken_lines;
  if (!log.complaint) {
    log.complaint = std::string(line.substr(0, kLongest));
    log.complaint_ns = log.last_ns;
  }
}

}  // namespace unidle::logs::detail
