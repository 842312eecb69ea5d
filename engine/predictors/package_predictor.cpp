#include "engine/predictors/package_predictor.h"

#include <fmt/format.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

#include <algorithm>
#include <utility>

#include "engine/predictors/unpacked_package.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/json.h"
#include "unidle/base/printable.h"
#include "unidle/cache/key.h"

namespace unidle::engine {

using cache::Prediction;

namespace {

constexpr const char* kContract =
    "compile it with the metadata \"unidle\": {\"alphabet\": \"ACDE...\", \"outputs\": [[name, [axes along the "
    "input]], ...]}; see docs/cache.md";

}  // namespace

PackagePredictor::PackagePredictor(std::string path, const std::string& device, const nlohmann::json& parameters)
    : TorchPredictor(std::move(path)) {
  facts_ = {"aotinductor", cache::sha256_of(read_file(path_)).hex()};
  if (!parameters.empty()) {
    throw Error(ErrorCode::kUsage, path_, "takes no parameters", "what it computes was decided when it was compiled");
  }
  package_ = std::make_unique<UnpackedPackage>(path_);
  auto metadata = package_->metadata();
  read_contract(metadata["unidle"]);
  const std::string& compiled_for = metadata["AOTI_DEVICE_KEY"];
  if (device != "auto" && device != compiled_for) {
    throw Error(ErrorCode::kUsage, path_, fmt::format("was compiled for {}, not for {}", compiled_for, device));
  }
  device_ = at::Device(compiled_for);
}

PackagePredictor::~PackagePredictor() = default;

void PackagePredictor::read_contract(const std::string& text) {
  try {
    const nlohmann::json contract = nlohmann::json::parse(text);
    std::int64_t next = 0;
    for (const char letter : contract.at("alphabet").get<std::string>()) {
      tokens_[static_cast<unsigned char>(letter)] = ++next;
    }
    longest_ = contract.value("longest", std::size_t{0});
    for (const nlohmann::json& output : contract.at("outputs")) {
      outputs_.push_back({output.at(0).get<std::string>(), output.at(1).get<std::vector<std::int64_t>>()});
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::kInput, path_, "does not say what it takes and gives", kContract);
  }
}

/// Why the model does not accept the input; empty when it does.
std::string PackagePredictor::fault_of(const std::string& input) const {
  if (input.empty()) {
    return "is empty";
  }
  if (longest_ != 0 && input.size() > longest_) {
    return fmt::format("has {} letters; the model takes {}", input.size(), longest_);
  }
  const auto unknown = std::find_if(input.begin(), input.end(),
                                    [&](char letter) { return tokens_[static_cast<unsigned char>(letter)] == 0; });
  return unknown == input.end()
             ? ""
             : fmt::format("has a letter that the model does not know: {}", printable_line({&*unknown, 1}));
}

void PackagePredictor::check(const std::vector<at::Tensor>& given, std::int64_t batch, std::int64_t length) const {
  if (given.size() != outputs_.size()) {
    throw Error(ErrorCode::kInput, path_,
                fmt::format("gives {} tensors; its metadata names {}", given.size(), outputs_.size()));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto sizes = given[i].sizes();
    const auto fits = [&](std::int64_t axis) {
      return axis > 0 && axis < given[i].dim() && sizes[static_cast<std::size_t>(axis)] == length;
    };
    if (given[i].dim() == 0 || sizes[0] != batch ||
        !std::all_of(outputs_[i].along.begin(), outputs_[i].along.end(), fits)) {
      throw Error(
          ErrorCode::kInput, path_,
          fmt::format("gives '{}' as [{}] for {} inputs of {} letters; expected the batch first, and the axes "
                      "{} along the input",
                      outputs_[i].name, fmt::join(sizes, ", "), batch, length, fmt::join(outputs_[i].along, ", ")));
    }
  }
}

std::vector<Prediction> PackagePredictor::predict_all(std::span<const std::string> inputs) {
  std::vector<Prediction> predictions(inputs.size());
  std::vector<std::size_t> good;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    predictions[i].error = fault_of(inputs[i]);
    if (predictions[i].error.empty()) {
      good.push_back(i);
      longest = std::max(longest, inputs[i].size());
    }
  }
  if (good.empty()) {
    return predictions;
  }
  const auto batch = static_cast<std::int64_t>(good.size());
  const auto length = static_cast<std::int64_t>(longest);
  at::Tensor tokens = at::zeros({batch, length}, at::kLong);
  at::Tensor lengths = at::empty({batch}, at::kLong);
  auto* token = tokens.mutable_data_ptr<std::int64_t>();
  for (std::size_t row = 0; row < good.size(); ++row, token += length) {
    const std::string& input = inputs[good[row]];
    lengths.mutable_data_ptr<std::int64_t>()[row] = static_cast<std::int64_t>(input.size());
    std::transform(input.begin(), input.end(), token,
                   [&](char letter) { return tokens_[static_cast<unsigned char>(letter)]; });
  }
  const std::vector<at::Tensor> given = package_->runner().run({tokens.to(device_), lengths.to(device_)});
  check(given, batch, length);
  for (std::size_t row = 0; row < good.size(); ++row) {
    NamedTensors arrays;
    for (std::size_t i = 0; i < given.size(); ++i) {
      at::Tensor value = given[i].select(0, static_cast<std::int64_t>(row));
      for (const std::int64_t axis : outputs_[i].along) {
        value = value.narrow(axis - 1, 0, static_cast<std::int64_t>(inputs[good[row]].size()));
      }
      arrays.emplace(outputs_[i].name, value);
    }
    predictions[good[row]] = prediction_of(arrays);
  }
  return predictions;
}

}  // namespace unidle::engine
