#include "unidle/account/own_gpu.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "unidle/base/json.h"
#include "unidle/record/note_types.h"

namespace unidle::account {

namespace {

using nlohmann::json;

json gpus_of(const RunData& run) {
  const json gpus = run.meta_value(record::meta::kGpus);
  return gpus.is_array() ? gpus : json::array();
}

/// Records of older versions have no index; there the position in the list counts.
std::string subject_of(const json& gpus, std::size_t place) {
  return "gpu" + std::to_string(whole_in(gpus[place], "index").value_or(static_cast<std::int64_t>(place)));
}

/// "GPU-x" and "MIG-x" give "x": a program with a slice may report either prefix.
std::string_view plain_uuid(std::string_view uuid) {
  return uuid.starts_with("GPU-") || uuid.starts_with("MIG-") ? uuid.substr(4) : uuid;
}

bool has_uuid(const json& one, std::string_view uuid) {
  return !uuid.empty() && plain_uuid(text_in(one, "uuid")) == plain_uuid(uuid);
}

json slices_of(const json& gpu) {
  const json slices = gpu.is_object() ? gpu.value("mig", json::array()) : json::array();
  return slices.is_array() ? slices : json::array();
}

OwnGpu gpu_at(const json& gpus, std::size_t place) { return {subject_of(gpus, place), gpus[place], std::nullopt}; }

OwnGpu with_slice(OwnGpu gpu, const json& slice) {
  const auto index = whole_in(slice, "index");
  gpu.slice = index ? std::optional(gpu.subject + "/mig" + std::to_string(*index)) : std::nullopt;
  gpu.slice_facts = slice;
  return gpu;
}

/// By its UUID or that of one of its slices, else by its PCI address.
std::optional<OwnGpu> find_gpu(const json& gpus, const std::string& uuid, const std::string& pci) {
  std::optional<OwnGpu> at_address;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const json slices = slices_of(gpus[i]);
    const auto slice = std::find_if(slices.begin(), slices.end(), [&](const json& one) { return has_uuid(one, uuid); });
    if (slice != slices.end()) {
      return with_slice(gpu_at(gpus, i), *slice);
    }
    const bool here = has_uuid(gpus[i], uuid);
    if (here || (!pci.empty() && text_in(gpus[i], "pci") == pci)) {
      at_address = slices.size() == 1 ? with_slice(gpu_at(gpus, i), slices.front()) : gpu_at(gpus, i);
    }
    if (here) {
      break;
    }
  }
  return at_address;
}

/// From the last recorded note of the training process: it may note a device before it moves the model there.
std::optional<OwnGpu> told(const RunData& run, const json& gpus, std::optional<std::int64_t> process) {
  std::optional<OwnGpu> found;
  record::each_note<record::NoteType::kDevice>(run.notes, [&](const auto& note) {
    if (process && note.process() != *process) {
      return;
    }
    if (auto gpu = find_gpu(gpus, note.text("uuid"), note.text("pci"))) {
      found = std::move(gpu);
    }
  });
  return found;
}

OwnGpu gpu_of(const json& gpus, const std::string& subject) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (subject_of(gpus, i) == subject) {
      return gpu_at(gpus, i);
    }
  }
  return {subject, nullptr, std::nullopt};
}

}  // namespace

bool OwnGpu::sliced() const { return !slices_of(facts).empty(); }

std::optional<OwnGpu> own_gpu(const RunData& run, const Readings& readings, std::optional<std::int64_t> process) {
  const json gpus = gpus_of(run);
  if (auto found = told(run, gpus, process)) {
    return found;
  }
  std::pair<double, std::string> most = {0, ""};
  for (const std::string& gpu : readings.subjects(record::series::kGpuOwn)) {
    most = std::max(most, std::pair(readings.mean(record::series::kGpuOwn, &gpu).value_or(0), gpu));
  }
  if (most.first > 0) {
    return gpu_of(gpus, most.second);
  }
  const std::vector<std::string> all = readings.subjects(record::series::kGpuUtil);
  return all.size() == 1 ? std::optional(gpu_of(gpus, all.front())) : std::nullopt;
}

}  // namespace unidle::account
