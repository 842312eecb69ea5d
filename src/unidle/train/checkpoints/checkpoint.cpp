#include "unidle/train/checkpoints/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "unidle/base/checksum.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/train/checkpoints/archive.h"

namespace unidle::train {

namespace {

constexpr std::int64_t kVersion = 3;

using Dict = c10::impl::GenericDict;

Dict new_dict() { return Dict(c10::StringType::get(), c10::AnyType::get()); }

/// Copies the value to the host, reusing the memory of `slot` if it fits.
void keep(at::Tensor& slot, const at::Tensor& value) {
  if (slot.defined() && slot.sizes() == value.sizes() && slot.scalar_type() == value.scalar_type() &&
      slot.strides() == value.strides()) {
    slot.copy_(value);
  } else {
    slot = value.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
  }
}

void keep_all(std::vector<at::Tensor>& slots, const std::vector<at::Tensor>& values) {
  slots.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    keep(slots[i], values[i]);
  }
}

template <typename Items>
void keep_named(Snapshot::Named& slots, const Items& items) {
  slots.resize(items.size());
  std::size_t i = 0;
  for (const auto& item : items) {
    slots[i].first = item.key();
    keep(slots[i].second, item.value());
    ++i;
  }
}

at::Generator generator_of(at::Device device) {
  return device.is_cpu() ? at::detail::getDefaultCPUGenerator() : at::globalContext().defaultGenerator(device);
}

/// A checksum of everything in a snapshot; torch does not verify the checksums of its archives.
class Checksum {
 public:
  void add(std::string_view bytes) { value_ = crc32(value_, std::as_bytes(std::span(bytes))); }
  void add(const at::Tensor& tensor) {
    const at::Tensor plain = tensor.contiguous();
    add(fmt::format("{}{}", c10::toString(plain.scalar_type()), fmt::join(plain.sizes(), ",")));
    add(std::string_view(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()));
  }
  void add(const std::vector<at::Tensor>& tensors) {
    add(fmt::format("{};", tensors.size()));
    for (const at::Tensor& tensor : tensors) {
      add(tensor);
    }
  }
  void add(const Snapshot::Named& named) {
    for (const auto& [name, tensor] : named) {
      add(name + "\n");
      add(tensor);
    }
  }
  std::string text() const { return fmt::format("{:08x}", value_); }

 private:
  std::uint32_t value_ = 0;
};

std::string checksum_of(const Snapshot& snapshot) {
  Checksum checksum;
  checksum.add(fmt::format("{}\n{}\n{}\n{} {}\n", snapshot.workload, snapshot.seed, snapshot.optimizer_name,
                           snapshot.position.samples, snapshot.position.steps));
  checksum.add(snapshot.parameters);
  checksum.add(snapshot.buffers);
  checksum.add(snapshot.averages);
  checksum.add(snapshot.optimizer);
  checksum.add(snapshot.scaler);
  checksum.add(snapshot.random.host);
  if (snapshot.random.device.defined()) {
    checksum.add(snapshot.random.device);
  }
  return checksum.text();
}

Dict to_dict(const Snapshot::Named& named) {
  Dict dict = new_dict();
  for (const auto& [name, tensor] : named) {
    dict.insert(name, tensor);
  }
  return dict;
}

Snapshot::Named to_named(const c10::IValue& value) {
  Snapshot::Named named;
  for (const auto& entry : value.toGenericDict()) {
    named.emplace_back(entry.key().toStringRef(), entry.value().toTensor());
  }
  return named;
}

c10::IValue to_list(const std::vector<at::Tensor>& tensors) {
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : tensors) {
    list.push_back(tensor);
  }
  return list;
}

std::vector<at::Tensor> to_vector(const c10::IValue& value) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& entry : value.toList()) {
    tensors.push_back(entry.toTensor());
  }
  return tensors;
}

[[noreturn]] void refuse_checkpoint(const std::string& path, std::string message, std::string hint) {
  throw Error(ErrorCode::kInput, path, std::move(message), std::move(hint));
}

void check_alike(const Snapshot::Named& stored, const torch::OrderedDict<std::string, at::Tensor>& own,
                 const std::string& path) {
  for (const auto& item : own) {
    const auto found = std::ranges::find(stored, item.key(), &Snapshot::Named::value_type::first);
    if (found == stored.end() || found->second.sizes() != item.value().sizes()) {
      refuse_checkpoint(path, fmt::format("is of another model: '{}' does not fit", item.key()),
                        "use the configuration that made it");
    }
  }
  if (stored.size() != own.size()) {
    refuse_checkpoint(path,
                      fmt::format("is of another model: it has {} tensors, this one {}", stored.size(), own.size()),
                      "use the configuration that made it");
  }
}

void check_alike(const Snapshot& snapshot, const LiveState& state, int ranks, const std::string& path) {
  if (snapshot.workload != state.workload) {
    refuse_checkpoint(path, fmt::format("is of the workload {}, this one is {}", snapshot.workload, state.workload),
                      "train that workload, or take its weights alone with --weights");
  }
  if (snapshot.seed != state.seed) {
    refuse_checkpoint(path,
                      fmt::format("was trained with seed {}, not {}: its place in the data is in another order",
                                  snapshot.seed, state.seed),
                      fmt::format("set seed: {}, or take its weights alone with --weights", snapshot.seed));
  }
  check_alike(snapshot.parameters, state.model.named_parameters(), path);
  check_alike(snapshot.buffers, state.model.named_buffers(), path);
  if (snapshot.optimizer_name != state.optimizer.name()) {
    refuse_checkpoint(path,
                      fmt::format("was trained with optimizer.name {}, not {}", snapshot.optimizer_name,
                                  std::string(state.optimizer.name())),
                      fmt::format("set optimizer.name: {}", snapshot.optimizer_name));
  }
  if (snapshot.averages.size() != state.averaged.averages().size()) {
    refuse_checkpoint(
        path, snapshot.averages.empty() ? "has no averaged weights" : "has averaged weights, and ema.decay is 0",
        "set ema.decay as it was");
  }
  if (snapshot.ranks() != ranks) {
    const std::string made_by = fmt::format("{} process{}", snapshot.ranks(), snapshot.ranks() == 1 ? "" : "es");
    refuse_checkpoint(path, fmt::format("was made by {}, not {}", made_by, ranks),
                      fmt::format("start {}, or take its weights alone with --weights", made_by));
  }
}

void copy_named(const Snapshot::Named& stored, const torch::OrderedDict<std::string, at::Tensor>& own) {
  for (const auto& [name, tensor] : stored) {
    own[name].copy_(tensor);
  }
}

}  // namespace

at::Tensor random_state(at::Device device) { return generator_of(device).get_state(); }

void set_random_state(at::Device device, const at::Tensor& state) { generator_of(device).set_state(state.clone()); }

RandomStates own_random_states(at::Device device) {
  return {random_state(at::kCPU).unsqueeze(0), device.is_cpu() ? at::Tensor() : random_state(device).unsqueeze(0)};
}

void take(Snapshot& snapshot, const LiveState& state, const Position& position) {
  const at::NoGradGuard no_grad;
  snapshot.workload = state.workload;
  snapshot.seed = state.seed;
  snapshot.optimizer_name = state.optimizer.name();
  snapshot.position = position;
  keep_named(snapshot.parameters, state.model.named_parameters());
  keep_named(snapshot.buffers, state.model.named_buffers());
  keep_all(snapshot.averages, state.averaged.averages());
  keep_all(snapshot.optimizer, state.optimizer.state());
  keep_all(snapshot.scaler, state.precision.state());
  snapshot.random = own_random_states(state.device);
}

void restore(const Snapshot& snapshot, const LiveState& state, int rank, int ranks, const std::string& path) {
  const at::NoGradGuard no_grad;
  check_alike(snapshot, state, ranks, path);
  copy_named(snapshot.parameters, state.model.named_parameters());
  copy_named(snapshot.buffers, state.model.named_buffers());
  for (std::size_t i = 0; i < snapshot.averages.size(); ++i) {
    at::Tensor average = state.averaged.averages()[i];
    average.copy_(snapshot.averages[i]);
  }
  try {
    state.optimizer.load_state(snapshot.optimizer);
    state.precision.load_state(snapshot.scaler);
    set_random_state(at::kCPU, snapshot.random.host[rank]);
    if (!state.device.is_cpu() && snapshot.random.device.defined()) {
      set_random_state(state.device, snapshot.random.device[rank]);
    }
  } catch (const c10::Error&) {
    refuse_checkpoint(path, "is of another model: the optimiser's state does not fit",
                      "use the configuration that made it");
  }
}

std::vector<char> to_bytes(const Snapshot& snapshot) {
  Dict root = new_dict();
  root.insert("version", kVersion);
  root.insert("workload", snapshot.workload);
  root.insert("seed", snapshot.seed);
  root.insert("samples", snapshot.position.samples);
  root.insert("steps", snapshot.position.steps);
  root.insert("parameters", to_dict(snapshot.parameters));
  root.insert("buffers", to_dict(snapshot.buffers));
  root.insert("averages", to_list(snapshot.averages));
  root.insert("optimizer_name", snapshot.optimizer_name);
  root.insert("optimizer", to_list(snapshot.optimizer));
  root.insert("scaler", to_list(snapshot.scaler));
  root.insert("host_random", snapshot.random.host);
  if (snapshot.random.device.defined()) {
    root.insert("device_random", snapshot.random.device);
  }
  root.insert("checksum", checksum_of(snapshot));
  return torch::jit::pickle_save(root);
}

Snapshot from_bytes(const std::string& bytes, const std::string& path) {
  try {
    const Dict root = read_archive(bytes);
    const std::int64_t version = root.at("version").toInt();
    if (version != kVersion) {
      throw Error(ErrorCode::kInput, path, fmt::format("is a checkpoint of version {}, not {}", version, kVersion),
                  "use the unidle that made it");
    }
    Snapshot snapshot;
    snapshot.workload = root.at("workload").toStringRef();
    snapshot.seed = root.at("seed").toInt();
    snapshot.position = {root.at("samples").toInt(), root.at("steps").toInt()};
    snapshot.parameters = to_named(root.at("parameters"));
    snapshot.buffers = to_named(root.at("buffers"));
    snapshot.averages = to_vector(root.at("averages"));
    snapshot.optimizer_name = root.at("optimizer_name").toStringRef();
    snapshot.optimizer = to_vector(root.at("optimizer"));
    snapshot.scaler = to_vector(root.at("scaler"));
    snapshot.random.host = root.at("host_random").toTensor();
    if (root.contains("device_random")) {
      snapshot.random.device = root.at("device_random").toTensor();
    }
    const bool a_row_each = snapshot.random.host.dim() == 2 &&
                            (!snapshot.random.device.defined() ||
                             (snapshot.random.device.dim() == 2 && snapshot.random.device.size(0) == snapshot.ranks()));
    if (root.at("checksum").toStringRef() == checksum_of(snapshot) && a_row_each && snapshot.position.samples >= 0 &&
        snapshot.position.steps >= 0) {
      return snapshot;
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {  // torch throws various types for it
  }
  throw Error(ErrorCode::kCorrupt, path, "is not a checkpoint, or a damaged one");
}

Snapshot read_checkpoint(const std::filesystem::path& path) { return from_bytes(read_file(path), path.string()); }

}  // namespace unidle::train
