#include "workloads/torchscript/exported_archive.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "unidle/base/error.h"
#include "unidle/base/json.h"
#include "workloads/torchscript/exported_graph.h"

namespace unidle::workloads::torchscript {

namespace {

using nlohmann::json;

/// What is added within a major version does not change the rest.
constexpr int kSchema = 8;

/// The names of the programs in an archive.
std::vector<std::string> programs_in(caffe2::serialize::PyTorchStreamReader& archive) {
  constexpr std::string_view kFolder = "models/";
  constexpr std::string_view kEnding = ".json";
  std::vector<std::string> names;
  for (const std::string& record : archive.getAllRecords()) {
    if (record.starts_with(kFolder) && record.ends_with(kEnding)) {
      names.push_back(record.substr(kFolder.size(), record.size() - kFolder.size() - kEnding.size()));
    }
  }
  return names;
}

std::vector<std::int64_t> whole_sizes(const json& sizes) {
  std::vector<std::int64_t> numbers;
  for (const json& size : sizes) {
    numbers.push_back(size.at("as_int").get<std::int64_t>());
  }
  return numbers;
}

}  // namespace

bool is_exported(const std::string& path) {
  try {
    return caffe2::serialize::PyTorchStreamReader(path).hasRecord("archive_format");
  } catch (const std::exception&) {  // torch throws several kinds
    return false;
  }
}

ExportedArchive::ExportedArchive(const std::string& path, at::Device device) : archive_(path), device_(device) {
  const std::vector<std::string> programs = programs_in(archive_);
  if (programs.size() != 1) {
    throw Error(ErrorCode::kInput, path, fmt::format("holds {} exported programs; expected one", programs.size()),
                "torch.export.save(program, path) writes one; what AOTInductor compiled cannot be trained");
  }
  program_ = document("models/" + programs[0] + ".json");
  if (const int schema = program_.at("schema_version").at("major").get<int>(); schema != kSchema) {
    throw Error(ErrorCode::kInput, path, fmt::format("is of schema {}; this unidle reads {}", schema, kSchema),
                "save it with another torch");
  }
  weights_ = document("data/weights/" + programs[0] + "_weights_config.json").at("config");
  constants_ = document("data/constants/" + programs[0] + "_constants_config.json").at("config");
}

json ExportedArchive::document(const std::string& name) {
  const auto [bytes, size] = archive_.getRecord(name);
  json document = parse_json({static_cast<const char*>(bytes.get()), size});
  if (document.is_discarded()) {
    throw std::runtime_error(name + " in it is not JSON");
  }
  return document;
}

const at::Tensor& ExportedArchive::tensor(const std::string& folder, const json& config, const std::string& name) {
  const json& meta = config.at(name);
  const auto [known, is_new] = tensors_.try_emplace(folder + meta.dump());
  if (is_new) {
    known->second = read(folder + meta.at("path_name").get<std::string>(), meta);
  }
  return known->second;
}

at::Tensor ExportedArchive::read(const std::string& record, const json& meta) {
  const json& tensor = meta.at("tensor_meta");
  constexpr int kStrided = 7;
  if (meta.at("use_pickle").get<bool>() || tensor.at("layout") != kStrided) {
    throw std::runtime_error("it has tensors of a kind of their own");
  }
  const auto [bytes, size] = archive_.getRecord(record);
  const at::ScalarType type = exported_type(tensor.at("dtype").get<int>());
  const at::Tensor storage =
      at::from_blob(bytes.get(), {static_cast<std::int64_t>(size / at::elementSize(type))}, at::TensorOptions(type));
  return storage
      .as_strided(whole_sizes(tensor.at("sizes")), whole_sizes(tensor.at("strides")),
                  tensor.at("storage_offset").at("as_int").get<std::int64_t>())
      .clone()
      .to(device_)
      .requires_grad_(tensor.at("requires_grad").get<bool>());
}

}  // namespace unidle::workloads::torchscript
