#include "unidle/diagnose/detail/own_gpus.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "unidle/base/json.h"
#include "unidle/record/note_types.h"

namespace unidle::diagnose::detail {

namespace {

using nlohmann::json;

json gpus_of(const record::Reader& reader) {
  const json gpus = reader.meta(record::meta::kGpus).value_or(json::array());
  return gpus.is_array() ? gpus : json::array();
}

/// Records of older versions have no index: the place in the list.
std::string subject_of(const json& gpus, std::size_t place) {
  return "gpu" + std::to_string(whole_in(gpus[place], "index").value_or(static_cast<std::int64_t>(place)));
}

/// "GPU-x" and "MIG-x" -> "x": a program that has a slice may call it either.
std::string_view plain_uuid(std::string_view uuid) {
  return uuid.starts_with("GPU-") || uuid.starts_with("MIG-") ? uuid.substr(4) : uuid;
}

bool has_uuid(const json& gpu, std::string_view uuid) {
  const auto is_it = [&](const json& one) { return plain_uuid(text_in(one, "uuid")) == plain_uuid(uuid); };
  const json slices = gpu.value("mig", json::array());
  return !uuid.empty() && (is_it(gpu) || std::any_of(slices.begin(), slices.end(), is_it));
}

/// By its UUID or that of one of its slices; by its PCI address where nothing has that UUID.
std::optional<std::size_t> find_gpu(const json& gpus, const std::string& uuid, const std::string& pci) {
  std::optional<std::size_t> at_address;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (has_uuid(gpus[i], uuid)) {
      return i;
    }
    if (!pci.empty() && text_in(gpus[i], "pci") == pci) {
      at_address = i;
    }
  }
  return at_address;
}

/// The last word of the training process: a device may be told of before the model is moved there.
std::optional<std::string> told(const record::Reader& reader, std::optional<std::int64_t> process) {
  const json gpus = gpus_of(reader);
  std::optional<std::string> found;
  record::each_note<record::NoteType::kDevice>(reader.notes(), [&](const auto& note) {
    if (process && note.process() != *process) {
      return;
    }
    if (const auto gpu = find_gpu(gpus, note.text("uuid"), note.text("pci"))) {
      found = subject_of(gpus, *gpu);
    }
  });
  return found;
}

}  // namespace

std::optional<std::string> own_gpu(const record::Reader& reader, const Readings& readings,
                                   std::optional<std::int64_t> process) {
  if (auto found = told(reader, process)) {
    return found;
  }
  std::pair<double, std::string> most = {0, ""};
  for (const std::string& gpu : readings.subjects(record::series::kGpuOwn)) {
    most = std::max(most, std::pair(readings.mean(record::series::kGpuOwn, &gpu).value_or(0), gpu));
  }
  if (most.first > 0) {
    return most.second;
  }
  const std::vector<std::string> all = readings.subjects(record::series::kGpuUtil);
  return all.size() == 1 ? std::optional(all.front()) : std::nullopt;
}

json facts_of_gpu(const record::Reader& reader, const std::string& subject) {
  const json gpus = gpus_of(reader);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (subject_of(gpus, i) == subject) {
      return gpus[i];
    }
  }
  return nullptr;
}

}  // namespace unidle::diagnose::detail
