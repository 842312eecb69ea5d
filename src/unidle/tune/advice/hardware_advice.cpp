#include "unidle/tune/advice/hardware_advice.h"

#include <fmt/format.h>

#include <algorithm>

namespace unidle::tune {

namespace {

constexpr std::uint64_t kRoomyGpu_bytes = 24ULL << 30;
/// Lowest compute capability, times ten, with matrix units for fp16, and for bf16 and TF32.
constexpr int kVolta = 70;
constexpr int kAmpere = 80;

bool has_gpu(const Hardware& hardware) { return hardware.gpus > 0; }
bool has_units_for(int capability, const Hardware& hardware) {
  return has_gpu(hardware) && hardware.capability >= capability;
}

std::optional<Advised> workers(const Hardware& hardware, const knobs::Value& present) {
  const auto now = present.integer();
  const std::string room = "memory for one copy of the data set's state a worker";
  if (now == 0) {
    return Advised{best_workers(hardware),
                   fmt::format("the training process prepares every batch itself while the device waits; {}",
                               cpus_in_words(hardware)),
                   room};
  }
  if (now && *now > hardware.whole_cpus()) {
    return Advised{best_workers(hardware),
                   fmt::format("{} workers compete for the CPUs; {}", *now, cpus_in_words(hardware)), room};
  }
  return std::nullopt;
}

std::optional<Advised> threads(const Hardware& hardware, const knobs::Value& present) {
  const auto now = present.integer();
  const int cpus = hardware.whole_cpus();
  if (now && *now > cpus) {
    return Advised{cpus, fmt::format("{} threads compete for {} CPUs", *now, cpus)};
  }
  if (now && *now > 0 && *now < cpus && !has_gpu(hardware)) {
    return Advised{cpus, fmt::format("the arithmetic may use all {} CPUs", cpus)};
  }
  return std::nullopt;
}

std::optional<Advised> amp(const Hardware& hardware, const knobs::Value& present) {
  if (has_units_for(kAmpere, hardware) && present == "off") {
    return Advised{"bf16", fmt::format("{} has matrix units for bf16, which needs no loss scaling", hardware.gpu_name),
                   "a model that trains in mixed precision; compare the loss"};
  }
  if (has_units_for(kVolta, hardware) && !has_units_for(kAmpere, hardware) && (present == "off" || present == "bf16")) {
    return Advised{"fp16", fmt::format("{} has matrix units for fp16, not for bf16", hardware.gpu_name),
                   "loss scaling in the program; compare the loss"};
  }
  return std::nullopt;
}

/// Advice to switch a knob on when `wanted`; nothing otherwise.
std::optional<Advised> on(bool wanted, const knobs::Value& present, const char* reason, const char* depends) {
  return wanted && present == false ? std::optional(Advised{true, reason, depends}) : std::nullopt;
}

std::optional<Advised> tf32(const Hardware& hardware, const knobs::Value& present) {
  return on(has_units_for(kAmpere, hardware), present, "what stays in fp32 can use the TF32 matrix units",
            "no need for more than 10 bits in matrix products");
}

std::optional<Advised> pinned(const Hardware& hardware, const knobs::Value& present) {
  return on(has_gpu(hardware), present, "copies to the GPU are faster, and can be asynchronous, from pinned memory",
            "host memory that may be locked");
}

std::optional<Advised> non_blocking(const Hardware& hardware, const knobs::Value& present) {
  return on(has_gpu(hardware), present, "the host goes on while a batch is copied", "pinned memory");
}

std::optional<Advised> channels_last(const Hardware& hardware, const knobs::Value& present) {
  return on(!has_gpu(hardware) || has_units_for(kVolta, hardware), present,
            "convolution kernels work with channels innermost", "a model of convolutions");
}

struct Row {
  std::string_view knob;
  std::optional<Advised> (*advise)(const Hardware&, const knobs::Value& present);
};

constexpr Row kRows[] = {{"loader.workers", workers},
                         {"cpu.threads", threads},
                         {"precision.amp", amp},
                         {"precision.tf32", tf32},
                         {"loader.pin_memory", pinned},
                         {"transfer.non_blocking", non_blocking},
                         {"layout.channels_last", channels_last}};

}  // namespace

const std::vector<std::string_view>& knobs_of_hardware() {
  static const std::vector<std::string_view> kKnobs = [] {
    std::vector<std::string_view> knobs;
    for (const Row& row : kRows) {
      knobs.push_back(row.knob);
    }
    return knobs;
  }();
  return kKnobs;
}

std::optional<Advised> advised_for(const Hardware& hardware, std::string_view knob, const knobs::Value& present) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& each) { return each.knob == knob; });
  auto advised = row == std::end(kRows) ? std::nullopt : row->advise(hardware, present);
  return advised && advised->value == present ? std::nullopt : advised;
}

int best_workers(const Hardware& hardware) {
  const int each = hardware.whole_cpus() / std::max(1, hardware.gpus);
  return std::clamp(has_gpu(hardware) ? each - 1 : each / 2, 1, kMostWorkers);
}

std::string cpus_in_words(const Hardware& hardware) {
  return hardware.gpus > 1 ? fmt::format("this job may use {} CPUs for {} GPUs", hardware.whole_cpus(), hardware.gpus)
                           : fmt::format("this job may use {} CPUs", hardware.whole_cpus());
}

bool has_room_for_larger_batches(const Hardware& hardware) {
  return has_gpu(hardware) && hardware.gpu_memory_bytes >= kRoomyGpu_bytes;
}

}  // namespace unidle::tune
