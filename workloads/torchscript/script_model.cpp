#include "workloads/torchscript/script_model.h"

#include <torch/csrc/jit/serialization/import.h>

#include <filesystem>
#include <unordered_set>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/train/failure.h"

namespace unidle::workloads::torchscript {

namespace {

constexpr const char* kHowToMakeOne = "make one with torch.jit.script(model).save(path)";

/// The submodule that "a.b.weight" belongs to, created if needed, and "weight".
std::pair<torch::nn::Module*, std::string> part_and_name(torch::nn::Module& module, const std::string& path) {
  torch::nn::Module* part = &module;
  std::size_t begin = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    const std::string name = path.substr(begin, dot - begin);
    const auto parts = part->named_children();
    const auto* known = parts.find(name);
    part = known != nullptr ? known->get() : part->register_module(name, std::make_shared<torch::nn::Module>()).get();
    begin = dot + 1;
  }
  return {part, path.substr(begin)};
}

}  // namespace

ScriptModel::ScriptModel(torch::jit::Module script, std::string path)
    : script_(std::move(script)), path_(std::move(path)) {
  std::unordered_set<const at::TensorImpl*> known;  // a parameter with two names is registered under the first
  for (const auto& parameter : script_.named_parameters()) {
    if (known.insert(parameter.value.unsafeGetTensorImpl()).second) {
      add_parameter(parameter.name, parameter.value);
    }
  }
  for (const auto& buffer : script_.named_buffers()) {
    add_buffer(buffer.name, buffer.value);
  }
}

void ScriptModel::add_parameter(const std::string& path, const at::Tensor& value) {
  auto [part, name] = part_and_name(*this, path);
  part->register_parameter(name, value, value.requires_grad());
}

void ScriptModel::add_buffer(const std::string& path, const at::Tensor& value) {
  auto [part, name] = part_and_name(*this, path);
  part->register_buffer(name, value);
}

void ScriptModel::train(bool on) {
  Module::train(on);
  script_.train(on);
}

at::Tensor ScriptModel::forward(const at::Tensor& rows) {
  try {
    return script_.forward({rows}).toTensor();
  } catch (const std::exception& failure) {  // torch throws various types
    if (train::is_out_of_memory(failure)) {
      throw;
    }
    throw Error(ErrorCode::kInput, path_, "its forward fails: " + train::last_line_of(failure));
  }
}

std::unique_ptr<ScriptModel> load_script(const std::string& path, at::Device device) {
  if (const auto reason = why_no_file(path); reason || !std::filesystem::exists(path)) {
    throw Error(ErrorCode::kInput, path, reason.value_or("is not there"), kHowToMakeOne);
  }
  try {
    return std::make_unique<ScriptModel>(torch::jit::load(path, device), path);
  } catch (const std::exception& failure) {  // torch throws various types
    if (train::is_out_of_memory(failure)) {
      throw;
    }
    throw Error(ErrorCode::kInput, path, "is not a TorchScript module, or is damaged", kHowToMakeOne);
  }
}

}  // namespace unidle::workloads::torchscript
