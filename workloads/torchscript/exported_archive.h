// Files of torch.export.save: PT2 archives.
#pragma once

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace unidle::workloads::torchscript {

/// Whether the file is a PT2 archive, as torch.export.save and AOTInductor write it.
bool is_exported(const std::string& path);

/// One program and its tensors. One thread.
class ExportedArchive {
 public:
  /// Tensors will be on the device. Throws kInput naming the file where it holds another number of programs or is of
  /// another version, and what torch and nlohmann::json throw where it is damaged; so do the others.
  ExportedArchive(const std::string& path, at::Device device);

  /// An ExportedProgram of torch/_export/serde/schema.py, version 8.
  const nlohmann::json& program() const { return program_; }
  /// Of the state dict, by its name there: the same tensor for all names that share one.
  const at::Tensor& weight(const std::string& name) { return tensor("data/weights/", weights_, name); }
  /// Any other: of constants, and of buffers that are not saved.
  const at::Tensor& constant(const std::string& name) { return tensor("data/constants/", constants_, name); }

 private:
  nlohmann::json document(const std::string& name);
  const at::Tensor& tensor(const std::string& folder, const nlohmann::json& config, const std::string& name);
  at::Tensor read(const std::string& record, const nlohmann::json& meta);

  caffe2::serialize::PyTorchStreamReader archive_;
  at::Device device_;
  nlohmann::json program_, weights_, constants_;
  std::map<std::string, at::Tensor> tensors_;
};

}  // namespace unidle::workloads::torchscript
