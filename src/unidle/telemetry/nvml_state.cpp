// Properties and state of a device: link, memory health, modes, MIG slices, processes.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "unidle/telemetry/detail/nvml_api.h"

namespace unidle::telemetry {

namespace {

constexpr unsigned kMaxProcesses = 4096;
constexpr unsigned long long kNotAvailable = ~0ULL;
constexpr unsigned char kUntouched = 0xA5;

/// Derives the size of the entries that the driver wrote from where the last one ends.
std::optional<std::size_t> bytes_of_entry(const std::vector<unsigned char>& bytes, unsigned count) {
  const auto end = std::find_if(bytes.rbegin(), bytes.rend(), [](unsigned char byte) { return byte != kUntouched; });
  const auto written = static_cast<std::size_t>(bytes.rend() - end);
  for (const std::size_t length : {nvml::kShortProcess, sizeof(nvml::Process), nvml::kLongProcess}) {
    if (written == length * count) {
      return length;
    }
  }
  return std::nullopt;
}

}  // namespace

Pcie Nvml::pcie(unsigned device) {
  const auto read = [&](Api::Number& call) {
    return ask<unsigned>(device, call != nullptr, [&](auto d, unsigned* v) { return call(d, v); }).value;
  };
  return {read(api_->pcie_generation), read(api_->pcie_width), read(api_->pcie_max_generation),
          read(api_->pcie_max_width)};
}

bool Nvml::hidden(unsigned device) {
  nvml::Device known = nullptr;
  return handle(device) == nullptr && api_->handle_by_index(device, &known) == nvml::kNoPermission;
}

Measured<bool> Nvml::ecc_on(unsigned device) {
  return ask<bool>(device, api_->ecc_mode != nullptr, [&](nvml::Device known, bool* value) {
    unsigned current = 0;
    unsigned pending = 0;
    const int result = api_->ecc_mode(known, &current, &pending);
    *value = current != 0;
    return result;
  });
}

Measured<std::uint64_t> Nvml::ecc_uncorrected(unsigned device) {
  return ask<std::uint64_t>(device, api_->ecc_errors != nullptr, [&](nvml::Device known, std::uint64_t* value) {
    unsigned long long errors = 0;
    const int result = api_->ecc_errors(known, nvml::kEccUncorrected, nvml::kEccVolatile, &errors);
    *value = errors;
    return result;
  });
}

Measured<bool> Nvml::rows_pending(unsigned device) {
  return ask<bool>(device, api_->remapped_rows != nullptr, [&](nvml::Device known, bool* value) {
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    const int result = api_->remapped_rows(known, &corrected, &uncorrected, &pending, &failed);
    *value = pending != 0;
    return result;
  });
}

Measured<bool> Nvml::rows_failed(unsigned device) {
  return ask<bool>(device, api_->remapped_rows != nullptr, [&](nvml::Device known, bool* value) {
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    const int result = api_->remapped_rows(known, &corrected, &uncorrected, &pending, &failed);
    *value = failed != 0;
    return result;
  });
}

Measured<bool> Nvml::persistence_mode(unsigned device) {
  const auto mode =
      ask<unsigned>(device, api_->persistence != nullptr, [&](auto d, unsigned* v) { return api_->persistence(d, v); });
  return {mode ? std::optional(*mode != 0) : std::nullopt, mode.reason};
}

Measured<unsigned> Nvml::compute_mode(unsigned device) {
  return ask<unsigned>(device, api_->compute_mode != nullptr,
                       [&](auto d, unsigned* v) { return api_->compute_mode(d, v); });
}

Measured<bool> Nvml::mig_on(unsigned device) {
  return ask<bool>(device, api_->mig_mode != nullptr, [&](nvml::Device known, bool* value) {
    unsigned current = 0;
    unsigned pending = 0;
    const int result = api_->mig_mode(known, &current, &pending);
    *value = current != 0;
    return result;
  });
}

std::optional<MigDevice> Nvml::mig_device(nvml::Device slice) {
  MigDevice device;
  std::array<char, 96> text{};
  if (api_->name != nullptr && api_->name(slice, text.data(), text.size() - 1) == nvml::kSuccess) {
    device.name = text.data();
  }
  text = {};
  if (api_->uuid != nullptr && api_->uuid(slice, text.data(), text.size() - 1) == nvml::kSuccess) {
    device.uuid = text.data();
  }
  unsigned instance = 0;
  if (api_->gpu_instance != nullptr && api_->gpu_instance(slice, &instance) == nvml::kSuccess) {
    device.gpu_instance = instance;
  }
  nvml::Attributes attributes{};
  if (api_->attributes != nullptr && api_->attributes(slice, &attributes) == nvml::kSuccess) {
    device.multiprocessors = attributes.multiprocessors;
  }
  nvml::Memory memory{};
  if (api_->memory != nullptr && api_->memory(slice, &memory) == nvml::kSuccess) {
    device.memory = GpuMemory{memory.total, memory.used};
  }
  return device;
}

std::vector<MigDevice> Nvml::mig_devices(unsigned device) {
  std::vector<MigDevice> found;
  const auto most = ask<unsigned>(device, api_->mig_count != nullptr && api_->mig_handle != nullptr,
                                  [&](auto d, unsigned* v) { return api_->mig_count(d, v); });
  for (unsigned index = 0; index < most.value.value_or(0); ++index) {
    nvml::Device slice = nullptr;
    if (api_->mig_handle(handle(device), index, &slice) == nvml::kSuccess && slice != nullptr) {
      if (auto mig = mig_device(slice)) {
        mig->index = index;
        found.push_back(std::move(*mig));
      }
    }
  }
  return found;
}

int Nvml::list_processes(nvml::Device device, std::vector<GpuProcess>& found) {
  std::vector<unsigned char> bytes;
  unsigned count = 0;
  int result = nvml::kInsufficientSize;
  for (unsigned room = 64; result == nvml::kInsufficientSize && room <= kMaxProcesses; room *= 4) {
    bytes.assign(nvml::kLongProcess * room, kUntouched);
    count = room;
    result = api_->processes(device, &count, bytes.data());
    count = result == nvml::kSuccess ? std::min(count, room) : 0;
  }
  const std::size_t length = bytes_of_entry(bytes, count).value_or(api_->process_bytes());
  for (unsigned i = 0; i < count; ++i) {
    nvml::Process entry{0, kNotAvailable, nvml::kNoInstance, nvml::kNoInstance};
    std::memcpy(&entry, bytes.data() + i * length, std::min(length, sizeof entry));
    GpuProcess& process = found.emplace_back();
    process.pid = static_cast<std::int64_t>(entry.pid);
    if (entry.used_bytes != kNotAvailable) {
      process.used_bytes = entry.used_bytes;
    }
    if (entry.gpu_instance != nvml::kNoInstance) {
      process.gpu_instance = entry.gpu_instance;
    }
  }
  return result;
}

Measured<std::vector<GpuProcess>> Nvml::compute_processes(unsigned device) {
  auto found = ask<std::vector<GpuProcess>>(
      device, api_->processes != nullptr,
      [&](nvml::Device known, std::vector<GpuProcess>* list) { return list_processes(known, *list); });
  if (found.value) {
    add_shares(device, *found.value);
  }
  return found;
}

}  // namespace unidle::telemetry
