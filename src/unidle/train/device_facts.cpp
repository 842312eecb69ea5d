#include "unidle/train/device_facts.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "unidle/train/cuda_library.h"

namespace unidle::train {

namespace {

std::string spelt(const unsigned char (&uuid)[16]) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    const bool group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", group ? "-" : "", uuid[i]);
  }
  return text;
}

/// The MIG slice of this process: the first one that is visible. Empty without MIG.
std::string slice_shown() {
  const char* shown = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string_view all = shown != nullptr ? shown : "";
  const std::string_view first = all.substr(0, all.find(','));
  return first.starts_with("MIG-") ? std::string(first) : "";
}

}  // namespace

std::optional<DeviceFacts> device_facts(at::Device device) {
  void* ask = device.is_cuda() ? cuda_library_function("unidle_cuda_facts") : nullptr;
  if (ask == nullptr) {
    return std::nullopt;
  }
  CudaFacts told{};
  reinterpret_cast<AskCudaFacts>(ask)(device.index(), &told);
  const std::string slice = slice_shown();
  return DeviceFacts{.name = told.name,
                     .uuid = slice.empty() ? spelt(told.uuid) : slice,
                     .pci = told.pci,
                     .major = told.major,
                     .minor = told.minor,
                     .memory_bytes = told.memory_bytes};
}

}  // namespace unidle::train
