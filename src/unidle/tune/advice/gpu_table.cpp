#include "unidle/tune/advice/gpu_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "unidle/base/characters.h"
#include "unidle/base/error.h"

namespace unidle::tune {

namespace {

/// Letters and digits in lower case, without vendor words around the name.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (is_letter(c) || is_digit(c)) {
      text += lower(c);
    }
  }
  static constexpr std::array<std::string_view, 10> kNoise = {"nvidia", "geforce", "tesla", "quadro", "graphics",
                                                              "sxm2",   "sxm4",    "sxm5",  "pcie",   "hbm3"};
  for (const std::string_view noise : kNoise) {
    if (const std::size_t at = text.find(noise); at != std::string::npos && text.size() > noise.size()) {
      text.erase(at, noise.size());
    }
  }
  return text;
}

}  // namespace

const std::vector<GpuModel>& known_gpus() {
  static const std::vector<GpuModel> kGpus = {
      {"GTX 1080 Ti", 11, 61},  {"P100", 16, 60},        {"V100 16GB", 16, 70},     {"V100 32GB", 32, 70},
      {"T4", 16, 75},           {"RTX 2080 Ti", 11, 75}, {"RTX 8000", 48, 75},      {"A100 40GB", 40, 80},
      {"A100 80GB", 80, 80},    {"A800 80GB", 80, 80},   {"A30", 24, 80},           {"A10", 24, 86},
      {"A10G", 24, 86},         {"A40", 48, 86},         {"RTX A4000", 16, 86},     {"RTX A5000", 24, 86},
      {"RTX A6000", 48, 86},    {"RTX 3060", 12, 86},    {"RTX 3070", 8, 86},       {"RTX 3080", 10, 86},
      {"RTX 3090", 24, 86},     {"L4", 24, 89},          {"L40", 48, 89},           {"L40S", 48, 89},
      {"RTX 4060", 8, 89},      {"RTX 4070", 12, 89},    {"RTX 4080", 16, 89},      {"RTX 4090", 24, 89},
      {"RTX 6000 Ada", 48, 89}, {"H100 80GB", 80, 90},   {"H800 80GB", 80, 90},     {"H20", 96, 90},
      {"H200", 141, 90},        {"GH200", 96, 90},       {"B200", 180, 100},        {"RTX 5070", 12, 120},
      {"RTX 5080", 16, 120},    {"RTX 5090", 32, 120},   {"RTX PRO 6000", 96, 120},
  };
  return kGpus;
}

std::optional<GpuModel> find_gpu(std::string_view name) {
  const std::string wanted = plain(name);
  std::optional<GpuModel> found;
  for (const GpuModel& gpu : known_gpus()) {
    const std::string known = plain(gpu.name);
    const std::string memory = fmt::format("{}gb", gpu.memory_gib);
    const std::string bare = known.ends_with(memory) ? known.substr(0, known.size() - memory.size()) : known;
    if (wanted == known || wanted == bare + memory) {
      return gpu;
    }
    if (wanted == bare && (!found || gpu.memory_gib < found->memory_gib)) {
      found = gpu;
    }
  }
  return found;
}

Hardware with_device(Hardware host, std::string_view name) {
  host.gpu_note.clear();
  if (name == "cpu" || name == "CPU") {
    host.gpus = 0;
    host.capability = 0;
    host.gpu_name.clear();
    host.gpu_memory_bytes = 0;
    return host;
  }
  const auto gpu = find_gpu(name);
  if (!gpu) {
    std::string known = "cpu";
    for (const GpuModel& model : known_gpus()) {
      known += fmt::format(", {}", model.name);
    }
    throw Error(ErrorCode::kUsage, "--device", fmt::format("'{}' is not known", name), "known are " + known);
  }
  host.gpus = 1;
  host.capability = gpu->capability;
  host.gpu_name = gpu->name;
  host.gpu_memory_bytes = static_cast<std::uint64_t>(gpu->memory_gib) << 30;
  return host;
}

}  // namespace unidle::tune
