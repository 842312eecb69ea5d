// Renders a machine as text and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "unidle/base/layout.h"
#include "unidle/base/units.h"
#include "unidle/check/check.h"
#include "unidle/language/translator.h"

namespace unidle::check {

using nlohmann::json;

namespace {

template <typename Value>
json or_null(const std::optional<Value>& value) {
  return value ? json(*value) : json(nullptr);
}

json link_json(const telemetry::Pcie& link) {
  return {{"generation", or_null(link.generation)},
          {"width", or_null(link.width)},
          {"max_generation", or_null(link.max_generation)},
          {"max_width", or_null(link.max_width)}};
}

json gpu_json(const GpuState& gpu) {
  json entry = {{"index", gpu.facts.index},
                {"kind", gpu.facts.kind},
                {"name", gpu.facts.name},
                {"answers", gpu.answers},
                {"uuid", or_null(gpu.facts.uuid)},
                {"pci_bus_id", or_null(gpu.facts.pci_bus_id)},
                {"capability", or_null(gpu.facts.capability)},
                {"memory_bytes", or_null(gpu.facts.memory_bytes)},
                {"memory_used_bytes", or_null(gpu.reading.memory_bytes)},
                {"utilisation", or_null(gpu.reading.utilisation)},
                {"power_w", or_null(gpu.reading.power_w)},
                {"power_limit_w", or_null(gpu.facts.power_limit_w)},
                {"power_default_limit_w", or_null(gpu.power_default_limit_w)},
                {"temperature_c", or_null(gpu.reading.temperature_c)},
                {"sm_clock_mhz", or_null(gpu.reading.sm_clock_mhz)},
                {"sm_clock_max_mhz", or_null(gpu.facts.sm_clock_max_mhz)},
                {"throttle_reasons", nullptr},
                {"pcie", link_json(gpu.facts.pcie)},
                {"ecc", or_null(gpu.ecc_on)},
                {"ecc_uncorrected", or_null(gpu.reading.ecc_uncorrected)},
                {"mig", or_null(gpu.mig_on)},
                {"mig_devices", json::array()},
                {"persistence", or_null(gpu.persistence)},
                {"numa_node", or_null(gpu.facts.numa_node)},
                {"local_cpus", or_null(gpu.facts.local_cpus)},
                {"processes", nullptr}};
  if (gpu.reading.throttle_reasons) {
    entry["throttle_reasons"] = telemetry::throttle_names(static_cast<std::uint64_t>(*gpu.reading.throttle_reasons));
  }
  for (const telemetry::MigDevice& slice : gpu.facts.mig) {
    const auto bytes = slice.memory ? std::optional(slice.memory->total_bytes) : std::nullopt;
    const auto used = slice.memory ? std::optional(slice.memory->used_bytes) : std::nullopt;
    entry["mig_devices"].push_back({{"index", slice.index},
                                    {"name", slice.name},
                                    {"uuid", slice.uuid},
                                    {"memory_bytes", or_null(bytes)},
                                    {"memory_used_bytes", or_null(used)}});
  }
  if (gpu.processes) {
    entry["processes"] = json::array();
    for (const telemetry::GpuProcess& process : *gpu.processes) {
      entry["processes"].push_back(
          {{"pid", process.pid}, {"memory_bytes", or_null(process.used_bytes)}, {"share", or_null(process.share)}});
    }
  }
  return entry;
}

json host_json(const Machine& machine) {
  const telemetry::HostFacts& host = machine.host;
  json storage = json::array();
  for (const telemetry::Storage& one : machine.storage) {
    storage.push_back({{"path", one.path},
                       {"filesystem", one.filesystem},
                       {"device", one.device},
                       {"kind", one.kind},
                       {"total_bytes", or_null(one.total_bytes)},
                       {"free_bytes", or_null(one.free_bytes)}});
  }
  return {{"hostname", host.hostname},
          {"kernel", machine.kernel},
          {"cpu",
           {{"model", host.cpu_model},
            {"online", host.cpus_online},
            {"cores", or_null(machine.cores)},
            {"affinity", host.cpus_affinity},
            {"affinity_list", machine.affinity},
            {"quota", or_null(host.cpu_quota)},
            {"allowed", host.cpus_allowed()},
            {"numa_nodes", machine.numa.empty() ? json(nullptr) : json(machine.numa.size())},
            {"bf16", host.cpu_bf16()},
            {"amx", host.cpu_amx()},
            {"governor", machine.governor},
            {"load_1min", or_null(machine.load_1min)},
            {"throttled_periods", or_null(machine.cgroup.throttled_periods)},
            {"periods", or_null(machine.cgroup.periods)},
            {"pressure", machine.cpu_pressure ? or_null(machine.cpu_pressure->some_10s) : json(nullptr)}}},
          {"memory",
           {{"total_bytes", host.memory_bytes},
            {"limit_bytes", or_null(host.memory_limit)},
            {"available_bytes", or_null(machine.memory.available_bytes)},
            {"swap_used_bytes", or_null(machine.memory.swap_used_bytes)},
            {"shm_bytes", or_null(machine.memory.shm_bytes)},
            {"shm_free_bytes", or_null(machine.memory.shm_free_bytes)}}},
          {"storage", storage},
          {"open_files_limit", or_null(machine.open_files_limit)},
          {"environment", machine.environment}};
}

constexpr int kLabel = 12;

/// `text` in lines beside a label.
std::string row(std::string_view label, const std::string& text, int width) {
  constexpr int kLeast = 20;
  const int padding = std::max(0, kLabel - display_width(label));
  const std::string mark = std::string(label) + std::string(static_cast<std::size_t>(padding), ' ');
  return block(text, std::max(width, kLabel + kLeast), 0, mark);
}

std::string cpu_text(const Machine& machine, const Translator& translator) {
  const telemetry::HostFacts& host = machine.host;
  std::string text = translator.say("{} CPUs", host.cpus_online) +
                     (machine.cores ? translator.say(" ({} cores)", *machine.cores) : "");
  if (host.cpus_affinity != host.cpus_online) {
    text += translator.say(", {} by affinity", host.cpus_affinity);
  }
  text += host.cpu_quota ? translator.say(", quota {}", format_number(*host.cpu_quota)) : translator.say(", no quota");
  text += translator.say(": {} to use", format_number(host.cpus_allowed()));
  if (!host.cpu_model.empty()) {
    text += translator.word("; ") + host.cpu_model;
  }
  text += host.cpu_amx()    ? translator.say("; bf16 by AMX")
          : host.cpu_bf16() ? translator.say("; bf16")
                            : translator.say("; no bf16");
  if (machine.numa.size() == 1) {
    text += translator.say("; one NUMA node, nothing to place");
  } else if (!machine.numa.empty()) {
    text += translator.say("; {} NUMA nodes", machine.numa.size());
  }
  return text;
}

std::string memory_text(const Machine& machine, const Translator& translator) {
  std::string text = format_bytes(machine.host.memory_bytes);
  if (machine.memory.available_bytes) {
    text += translator.say(", {} available", format_bytes(*machine.memory.available_bytes));
  }
  if (machine.host.memory_limit) {
    text += translator.say(", limit {}", format_bytes(*machine.host.memory_limit));
  }
  if (machine.memory.shm_bytes) {
    text += translator.say("; /dev/shm {}", format_bytes(*machine.memory.shm_bytes));
  }
  return text;
}

std::string storage_text(const telemetry::Storage& storage, const Translator& translator) {
  std::string text = storage.path;
  if (storage.free_bytes && storage.total_bytes) {
    text += translator.say(": {} of {} free", format_bytes(*storage.free_bytes), format_bytes(*storage.total_bytes));
  }
  if (!storage.filesystem.empty()) {
    text += storage.device.empty() ? fmt::format(", {}", storage.filesystem)
                                   : translator.say(", {} on {}", storage.filesystem, storage.device);
  }
  return text + (storage.kind == "unknown" ? "" : fmt::format(" ({})", translator.word(storage.kind)));
}

/// "A of B unit", or the part of it that is known.
std::string of_text(const std::optional<double>& now, const std::optional<double>& most, std::string_view unit,
                    const Translator& translator) {
  if (!now && !most) {
    return "";
  }
  const std::string value = now ? fmt::format("{:.0f}", *now) : "?";
  return most ? translator.say(", {} of {:.0f} {}", value, *most, unit) : fmt::format(", {} {}", value, unit);
}

std::string gpu_text(const GpuState& gpu, const Translator& translator) {
  std::string text = gpu.facts.name;
  if (gpu.facts.capability) {
    text += translator.say(" (compute {})", *gpu.facts.capability);
  }
  if (gpu.facts.memory_bytes) {
    const auto used = static_cast<std::uint64_t>(gpu.reading.memory_bytes.value_or(0));
    text += translator.say(", {} of {} in use", gpu.reading.memory_bytes ? format_bytes(used) : "?",
                           format_bytes(*gpu.facts.memory_bytes));
  }
  text += of_text(gpu.reading.power_w, gpu.facts.power_limit_w, "W", translator);
  text += of_text(gpu.reading.sm_clock_mhz, gpu.facts.sm_clock_max_mhz, "MHz", translator);
  if (gpu.reading.temperature_c) {
    text += fmt::format(", {:.0f} C", *gpu.reading.temperature_c);
  }
  const telemetry::Pcie& link = gpu.facts.pcie;
  if (link.generation && link.width) {
    text += fmt::format(", PCIe {}.0 x{}", *link.generation, *link.width);
    if (link.max_generation && link.max_width) {
      text += translator.say(" (at most {}.0 x{})", *link.max_generation, *link.max_width);
    }
  }
  if (gpu.ecc_on) {
    text += *gpu.ecc_on ? ", ECC" : translator.say(", no ECC");
  }
  if (gpu.mig_on.value_or(false)) {
    text += translator.say(", MIG with {} slices", gpu.facts.mig.size());
  }
  if (gpu.processes) {
    text += gpu.processes->empty() ? translator.say(", nobody computes on it")
                                   : translator.say(", {} process(es) on it", gpu.processes->size());
  }
  return text;
}

std::string speed_text(const json& speed, int width, const Translator& translator) {
  std::string text = "\n" + translator.word("Speed") + "\n";
  const json& disk = speed["disk"];
  text += row("  " + translator.word("disk"),
              translator.say("{}/s in order, {:.0f} random reads of 16 KiB a second ({})",
                             format_bytes(static_cast<std::uint64_t>(disk["read_bytes_s"].get<double>())),
                             disk["small_reads_s"].get<double>(), translator.word(disk["read_how"].get<std::string>())),
              width);
  text += row("  " + translator.word("decode"),
              translator.say("{:.0f} JPEG of {} a second and core", speed["decode"]["jpeg_images_s"].get<double>(),
                             speed["decode"]["picture"].get<std::string>()),
              width);
  for (const json& device : speed["torch"].value("devices", json::array())) {
    const std::string name = "  " + device["device"].get<std::string>();
    // A CPU's values are thousandths of a GPU's.
    const bool cpu = device["device"] == "cpu";
    std::vector<std::string> parts;
    for (const auto& [precision, rate] : device["matmul_tflops"].items()) {
      parts.push_back(rate.is_number()
                          ? fmt::format("{} {}", precision, format_number(rate.get<double>() * (cpu ? 1e3 : 1)))
                          : fmt::format("{} -", precision));
    }
    std::string line = fmt::format("matmul {}: {}", cpu ? "GFLOP/s" : "TFLOP/s", fmt::join(parts, ", "));
    for (const auto& [key, label] :
         {std::pair("copy_pinned_bytes_s", "pinned"), {"copy_pageable_bytes_s", "pageable"}}) {
      if (device.contains(key) && device[key].is_number()) {
        line +=
            translator.say("; host to device {} {:.1f} GB/s", translator.word(label), device[key].get<double>() * 1e-9);
      }
    }
    if (device.contains("launch_s") && device["launch_s"].is_number()) {
      line += translator.say("; launch {}", format_seconds(device["launch_s"].get<double>()));
    }
    text += row(name, line, width);
  }
  return text;
}

}  // namespace

std::string to_text(const Machine& machine, const std::vector<Problem>& problems, const json& speed, int width,
                    Language language) {
  const Translator translator{language};
  std::string text =
      row(translator.word("machine"), fmt::format("{}, {}", machine.host.hostname, machine.kernel), width);
  text += row(translator.word("cpu"), cpu_text(machine, translator), width);
  text += row(translator.word("memory"), memory_text(machine, translator), width);
  for (const telemetry::Storage& storage : machine.storage) {
    text += row(translator.word("disk"), storage_text(storage, translator), width);
  }
  if (machine.driver_version) {
    text += row(translator.word("driver"),
                fmt::format("NVIDIA {}{}", *machine.driver_version,
                            machine.cuda_version ? translator.say(", CUDA up to {}", *machine.cuda_version) : ""),
                width);
  }
  for (const GpuState& gpu : machine.gpus) {
    text += row(fmt::format("gpu{}", gpu.facts.index), gpu_text(gpu, translator), width);
  }
  if (machine.gpus.empty()) {
    text += row(translator.word("gpu"),
                machine.gpus_known ? translator.word("none") : translator.say("not known: the driver does not answer"),
                width);
  }
  for (const auto& [name, value] : machine.environment) {
    text += row(name == machine.environment.begin()->first ? translator.word("environment") : "", name + "=" + value,
                width);
  }
  if (speed.is_object()) {
    text += speed_text(speed, width, translator);
  }
  text += "\n" + (problems.empty() ? translator.say("Nothing is wrong.") : translator.word("Problems")) + "\n";
  for (const Problem& problem : problems) {
    text += row(
        "  " + translator.word(to_string(problem.level)),
        translator.word(problem.subject) + translator.word(": ") + fmt::format("{} [{}]", problem.message, problem.id),
        width);
    if (!problem.fix.empty()) {
      text += row("", "-> " + problem.fix, width);
    }
  }
  return text;
}

json to_json(const Machine& machine, const std::vector<Problem>& problems, const json& speed) {
  json gpus = json::array();
  for (const GpuState& gpu : machine.gpus) {
    gpus.push_back(gpu_json(gpu));
  }
  json list = json::array();
  for (const Problem& problem : problems) {
    list.push_back({{"id", problem.id},
                    {"level", to_string(problem.level)},
                    {"subject", problem.subject},
                    {"message", problem.message},
                    {"fix", problem.fix}});
  }
  const bool known = machine.gpus_known || !gpus.empty();
  return {{"schema", "unidle.check/1"},
          {"host", host_json(machine)},
          {"driver", {{"version", or_null(machine.driver_version)}, {"cuda", or_null(machine.cuda_version)}}},
          {"gpus", known ? gpus : json(nullptr)},
          {"problems", list},
          {"speed", speed}};
}

}  // namespace unidle::check
