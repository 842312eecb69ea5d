#include "engine/predictors/unpacked_package.h"

#include <c10/core/Device.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/predictors/torch_predictor.h"
#include "unidle/base/error.h"
#include "unidle/train/failure.h"

namespace unidle::engine {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPackagePrefix = "unidle-package";
constexpr std::array<std::string_view, 2> kPackageFolders = {"data/aotinductor/model/", "data/constants/"};

/// Removes folders left by programs that were killed.
std::string_view with_older_ones_removed() {
  TemporaryFolder::sweep(kPackagePrefix);
  return kPackagePrefix;
}

struct UnpackedFiles {
  fs::path library;
  fs::path weights;  // empty when the library contains them
  fs::path metadata;
};

UnpackedFiles unpack(const std::string& package, const fs::path& folder) {
  caffe2::serialize::PyTorchStreamReader reader(package);
  UnpackedFiles files;
  for (const std::string& record : reader.getAllRecords()) {
    if (std::none_of(kPackageFolders.begin(), kPackageFolders.end(),
                     [&](std::string_view in) { return record.starts_with(in); })) {
      continue;
    }
    const fs::path file = folder / fs::path(record).filename();  // the library expects all of them beside it
    const auto [content, bytes] = reader.getRecord(record);
    std::ofstream out(file, std::ios::binary);
    if (!out.write(static_cast<const char*>(content.get()), static_cast<std::streamsize>(bytes)).flush()) {
      throw Error(ErrorCode::kIo, file.string(), "cannot be written", "is there room in $TMPDIR?");
    }
    files.library = file.extension() == ".so" ? file : files.library;
    files.weights = file.extension() == ".blob" ? file : files.weights;
    files.metadata = record.ends_with("wrapper_metadata.json") ? file : files.metadata;
  }
  if (files.library.empty() || files.metadata.empty()) {
    throw Error(ErrorCode::kInput, package, "holds no compiled model named \"model\"",
                "make it with aoti_compile_and_package, without package_cpp_only");
  }
  return files;
}

}  // namespace

UnpackedPackage::UnpackedPackage(const std::string& path) : folder_(with_older_ones_removed()) {
  try {
    const UnpackedFiles files = unpack(path, folder_.path());
    metadata_ = nlohmann::json::parse(read_file(files.metadata)).get<decltype(metadata_)>();
    const std::string& device = metadata_["AOTI_DEVICE_KEY"];
    const auto& makers = torch::inductor::getAOTIModelRunnerRegistry();
    const auto maker = makers.find(device);
    if (maker == makers.end()) {
      throw Error(ErrorCode::kInput, path, "was compiled for a device that this torch does not have: " + device);
    }
    constexpr std::size_t kRunners = 1;
    runner_ = maker->second(files.library.string(), kRunners, c10::Device(device).str(), folder_.path().string(),
                            /*run_single_threaded=*/false);
    if (!files.weights.empty()) {
      runner_->update_constant_buffer_from_blob(files.weights.string());
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& failure) {  // torch throws various types
    if (train::is_out_of_memory(failure)) {
      throw;
    }
    throw Error(ErrorCode::kInput, path, "is not an AOTInductor package, or was made for another machine or torch",
                train::last_line_of(failure));
  }
}

UnpackedPackage::~UnpackedPackage() = default;

}  // namespace unidle::engine
