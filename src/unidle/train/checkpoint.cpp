#include "unidle/train/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <string_view>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::train {

namespace {

constexpr std::int64_t kVersion = 1;

using Dict = c10::impl::GenericDict;

Dict new_dict() { return Dict(c10::StringType::get(), c10::AnyType::get()); }

c10::IValue to_host_list(const std::vector<at::Tensor>& tensors) {
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : tensors) {
    list.push_back(tensor.detach().to(at::kCPU));
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

template <typename Named>
Dict named_tensors(const Named& named) {
  Dict dict = new_dict();
  for (const auto& item : named) {
    dict.insert(item.key(), item.value().detach().to(at::kCPU));
  }
  return dict;
}

template <typename Named>
void restore_named(const Named& named, const Dict& stored, const std::string& path) {
  const at::NoGradGuard no_grad;
  for (const auto& item : named) {
    const auto found = stored.find(item.key());
    if (found == stored.end() || found->value().toTensor().sizes() != item.value().sizes()) {
      throw Error(ErrorCode::kInput, path, fmt::format("is of another model: '{}' does not fit", item.key()),
                  "use the configuration that made it");
    }
    item.value().copy_(found->value().toTensor());
  }
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const torch::nn::Module& model, const AdamW& optimizer,
                     const Precision& precision, const Position& position) {
  Dict root = new_dict();
  root.insert("version", kVersion);
  root.insert("samples", position.samples);
  root.insert("steps", position.steps);
  root.insert("parameters", named_tensors(model.named_parameters()));
  root.insert("buffers", named_tensors(model.named_buffers()));
  root.insert("optimizer", to_host_list(optimizer.state()));
  root.insert("scaler", to_host_list(precision.state()));
  root.insert("rng", at::detail::getDefaultCPUGenerator().get_state());
  const std::vector<char> bytes = torch::jit::pickle_save(root);
  make_folders(path.parent_path());
  write_file_atomic(path, std::string_view(bytes.data(), bytes.size()));
}

Position load_checkpoint(const std::filesystem::path& path, torch::nn::Module& model, AdamW& optimizer,
                         Precision& precision) {
  const std::string bytes = read_file(path);
  try {
    const Dict root = torch::jit::pickle_load(std::vector<char>(bytes.begin(), bytes.end())).toGenericDict();
    restore_named(model.named_parameters(), root.at("parameters").toGenericDict(), path.string());
    restore_named(model.named_buffers(), root.at("buffers").toGenericDict(), path.string());
    optimizer.load_state(to_vector(root.at("optimizer")));
    precision.load_state(to_vector(root.at("scaler")));
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    generator.set_state(root.at("rng").toTensor());
    const Position position{root.at("samples").toInt(), root.at("steps").toInt()};
    if (position.samples < 0 || position.steps < 0) {
      throw Error(ErrorCode::kInput, path.string(), "is a damaged checkpoint: its position is before the beginning");
    }
    return position;
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    throw Error(ErrorCode::kInput, path.string(), "is not a checkpoint, or a damaged one");
  }
}

}  // namespace unidle::train
