#include "unidle/train/checkpoints/weights.h"

#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/train/checkpoints/archive.h"
#include "unidle/train/checkpoints/checkpoint_folder.h"
#include "unidle/train/checkpoints/safetensors.h"

namespace unidle::train {

namespace {

struct TypeName {
  at::ScalarType type;
  const char* name;
};
constexpr std::array<TypeName, 10> kTypeNames = {{{at::kDouble, "F64"},
                                                  {at::kFloat, "F32"},
                                                  {at::kHalf, "F16"},
                                                  {at::kBFloat16, "BF16"},
                                                  {at::kLong, "I64"},
                                                  {at::kInt, "I32"},
                                                  {at::kShort, "I16"},
                                                  {at::kChar, "I8"},
                                                  {at::kByte, "U8"},
                                                  {at::kBool, "BOOL"}}};

bool is_safetensors(std::string_view file) {
  return file.size() > 8 && file[8] == '{';  // after the header's length; torch's files begin with PK or a pickle
}

Weights from_safetensors(std::string_view file, const std::string& path) {
  Weights weights;
  for (const SafeTensor& tensor : read_safetensors(file, path)) {
    const auto type = std::ranges::find(kTypeNames, tensor.dtype, &TypeName::name);
    at::Tensor value = at::empty(tensor.shape, at::TensorOptions(type->type));
    std::memcpy(value.data_ptr(), tensor.bytes.data(), tensor.bytes.size());
    weights.emplace_back(tensor.name, value);
  }
  return weights;
}

std::string to_safetensors(const Weights& weights, const std::string& path) {
  std::vector<at::Tensor> plain;  // owns the bytes
  std::vector<SafeTensor> tensors;
  for (const auto& [name, value] : weights) {
    plain.push_back(value.to(at::kCPU).contiguous());
    const at::Tensor& tensor = plain.back();
    const auto type = std::ranges::find(kTypeNames, tensor.scalar_type(), &TypeName::type);
    if (type == kTypeNames.end()) {
      throw Error(ErrorCode::kInput, path, fmt::format("'{}' has a type that safetensors does not know", name));
    }
    tensors.push_back(
        {name, type->name, tensor.sizes().vec(), {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}});
  }
  return write_safetensors(tensors);
}

/// Writes a dict as torch.save does. pickle_save would name TorchScript types, which weights_only=True rejects.
std::string to_torch(const Weights& weights) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
  for (const auto& [name, value] : weights) {
    dict.insert(name, value.detach().to(at::kCPU).contiguous());
  }
  std::string pickled;
  torch::jit::Pickler pickler([&](const char* bytes, std::size_t size) { pickled.append(bytes, size); }, nullptr,
                              nullptr, nullptr, {}, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(dict);
  pickler.stop();
  std::string file;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* bytes, std::size_t size) {
    file.append(static_cast<const char*>(bytes), size);
    return size;
  });
  std::size_t number = 0;
  for (const at::Tensor& tensor : pickler.tensorData()) {
    writer.writeRecord("data/" + std::to_string(number++), tensor.const_data_ptr(), tensor.nbytes());
  }
  writer.writeRecord("data.pkl", pickled.data(), pickled.size());
  writer.writeEndOfFile();
  return file;
}

Weights from_torch(const std::string& file, const std::string& path) {
  try {
    const c10::impl::GenericDict root = read_archive(file);
    if (root.contains("checksum")) {
      return weights_of(from_bytes(file, path), /*averaged=*/true);
    }
    Weights weights;
    for (const auto& entry : root) {
      weights.emplace_back(entry.key().toStringRef(), entry.value().toTensor());
    }
    return weights;
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {  // torch throws various types
    throw Error(ErrorCode::kInput, path, "holds no weights: expected names and tensors",
                "write it with torch.save(model.state_dict(), path), or as safetensors");
  }
}

/// The model's own parameters and buffers by name.
Weights tensors_of(const torch::nn::Module& model) {
  Weights all;
  for (const auto& item : model.named_parameters()) {
    all.emplace_back(item.key(), item.value());
  }
  for (const auto& item : model.named_buffers()) {
    all.emplace_back(item.key(), item.value());
  }
  return all;
}

}  // namespace

Weights weights_of(const Snapshot& snapshot, bool averaged) {
  Weights weights = snapshot.parameters;
  for (std::size_t i = 0; averaged && i < snapshot.averages.size(); ++i) {
    weights[i].second = snapshot.averages[i];
  }
  weights.insert(weights.end(), snapshot.buffers.begin(), snapshot.buffers.end());
  return weights;
}

void write_weights(const std::filesystem::path& path, const Weights& weights) {
  if (path.extension() == ".safetensors") {
    write_file_atomic(path, to_safetensors(weights, path.string()));
    return;
  }
  write_file_atomic(path, to_torch(weights));
}

Weights read_weights(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    std::filesystem::path found;
    return weights_of(read_newest(path, found), /*averaged=*/true);
  }
  const std::string file = read_file(path);
  return is_safetensors(file) ? from_safetensors(file, path.string()) : from_torch(file, path.string());
}

void load_weights(torch::nn::Module& model, const Weights& weights, const std::string& path) {
  const auto misfit = [&](const std::string& what) {
    throw Error(ErrorCode::kInput, path, "is of another model: " + what, "use the configuration that made it");
  };
  const Weights own = tensors_of(model);
  const auto named = [](const Weights& all, const std::string& name) {
    return std::ranges::find(all, name, &Weights::value_type::first);
  };
  for (const auto& [name, value] : weights) {
    if (named(own, name) == own.end()) {
      misfit(fmt::format("the model has no '{}'", name));
    }
  }
  for (const auto& [name, value] : own) {
    const auto found = named(weights, name);
    if (found == weights.end()) {
      misfit(fmt::format("it has no '{}'", name));
    }
    if (found->second.sizes() != value.sizes()) {
      misfit(fmt::format("'{}' is {}, the model's {}", name, c10::str(found->second.sizes()), c10::str(value.sizes())));
    }
  }
  const at::NoGradGuard no_grad;
  for (auto [name, value] : own) {
    value.copy_(named(weights, name)->second);
  }
}

}  // namespace unidle::train
