// Reads AMD devices from the sysfs of the amdgpu driver. Needs no library.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "unidle/telemetry/gpu.h"

namespace unidle::telemetry {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kVendor = "0x1002";

std::optional<std::string> line(const fs::path& file) {
  auto text = try_read_file(file);
  while (text && !text->empty() && std::isspace(static_cast<unsigned char>(text->back())) != 0) {
    text->pop_back();
  }
  return text && !text->empty() ? text : std::nullopt;
}

std::optional<double> number(const fs::path& file, double factor = 1) {
  const auto text = line(file);
  double value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) {
    return std::nullopt;
  }
  return value * factor;
}

std::optional<double> first_of(const std::optional<double>& one, const std::optional<double>& other) {
  return one ? one : other;
}

/// "8.0 GT/s PCIe" -> 3. Rates from the PCI Express base specifications 1.0 to 6.0.
std::optional<unsigned> generation(const fs::path& file) {
  constexpr std::pair<double, unsigned> kRates[] = {{2.5, 1}, {5, 2}, {8, 3}, {16, 4}, {32, 5}, {64, 6}};
  const auto rate = number(file);
  for (const auto& [gigatransfers, value] : kRates) {
    if (rate == gigatransfers) {
      return value;
    }
  }
  return std::nullopt;
}

std::optional<unsigned> lanes(const fs::path& file) {
  const auto value = number(file);
  return value && *value > 0 ? std::optional(static_cast<unsigned>(*value)) : std::nullopt;
}

/// The first device/hwmon/hwmonN.
fs::path sensors(const fs::path& device) {
  std::error_code failure;
  for (fs::directory_iterator entry(device / "hwmon", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    return entry->path();
  }
  return {};
}

class AmdReader final : public GpuReader {
 public:
  AmdReader(unsigned first_index, std::vector<fs::path> devices, fs::path root)
      : first_index_(first_index), devices_(std::move(devices)), root_(std::move(root)) {}

  std::vector<GpuFacts> facts() override {
    std::vector<GpuFacts> all;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const fs::path& device = devices_[i];
      GpuFacts& facts = all.emplace_back();
      facts.index = first_index_ + static_cast<unsigned>(i);
      facts.kind = "rocm";
      facts.name =
          line(device / "product_name").value_or(fmt::format("AMD {}", line(device / "device").value_or("GPU")));
      if (const auto bytes = number(device / "mem_info_vram_total")) {
        facts.memory_bytes = static_cast<std::uint64_t>(*bytes);
      }
      facts.uuid = line(device / "unique_id");
      std::error_code failure;
      const fs::path target = fs::canonical(device, failure);
      if (!failure) {
        facts.pci_bus_id = target.filename().string();
      }
      facts.power_limit_w = number(sensors(device) / "power1_cap", 1e-6);
      facts.pcie = {generation(device / "current_link_speed"), lanes(device / "current_link_width"),
                    generation(device / "max_link_speed"), lanes(device / "max_link_width")};
      add_locality(facts, root_);
    }
    return all;
  }

  std::vector<Subject> read(std::int64_t /*t_ns*/, bool slow) override {
    std::vector<Subject> subjects;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const fs::path& device = devices_[i];
      const fs::path hwmon = sensors(device);
      GpuReading reading;
      reading.utilisation = number(device / "gpu_busy_percent", 0.01);
      reading.dram_activity = number(device / "mem_busy_percent", 0.01);
      reading.memory_bytes = number(device / "mem_info_vram_used");
      reading.power_w = first_of(number(hwmon / "power1_average", 1e-6), number(hwmon / "power1_input", 1e-6));
      reading.power_limit_w = number(hwmon / "power1_cap", 1e-6);
      reading.temperature_c = number(hwmon / "temp1_input", 1e-3);
      reading.sm_clock_mhz = number(hwmon / "freq1_input", 1e-6);
      reading.memory_clock_mhz = number(hwmon / "freq2_input", 1e-6);
      if (slow) {
        const auto speed = generation(device / "current_link_speed");
        const auto width = lanes(device / "current_link_width");
        reading.pcie_generation = speed;
        reading.pcie_width = width;
      }
      const auto index = first_index_ + static_cast<unsigned>(i);
      subjects.push_back({fmt::format("gpu{}", index), reading, index, false});
    }
    return subjects;
  }

  std::optional<std::vector<GpuProcess>> processes(unsigned /*device*/) override { return std::nullopt; }

 private:
  unsigned first_index_;
  std::vector<fs::path> devices_;
  fs::path root_;
};

}  // namespace

std::unique_ptr<GpuReader> amd_reader(unsigned first_index, const fs::path& root) {
  std::vector<fs::path> devices;
  std::error_code failure;
  for (fs::directory_iterator entry(root / "sys/class/drm", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    const bool card = name.starts_with("card") && name.size() > 4 &&
                      std::all_of(name.begin() + 4, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    const fs::path device = entry->path() / "device";
    std::error_code ignored;
    // amdgpu also drives integrated graphics; only a device that reports its own memory can train.
    if (card && line(device / "vendor") == kVendor && fs::exists(device / "mem_info_vram_total", ignored)) {
      devices.push_back(device);
    }
  }
  if (devices.empty()) {
    return nullptr;
  }
  std::sort(devices.begin(), devices.end(), [](const fs::path& a, const fs::path& b) {
    const auto number_of = [](const fs::path& p) { return std::atoi(p.parent_path().filename().c_str() + 4); };
    return number_of(a) < number_of(b);
  });
  return std::make_unique<AmdReader>(first_index, std::move(devices), root);
}

}  // namespace unidle::telemetry
