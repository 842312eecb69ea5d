#include "workloads/protein/structure.h"

#include "unidle/base/error.h"
#include "unidle/train/device.h"
#include "workloads/protein/ensemble_features.h"
#include "workloads/protein/predictors.h"

namespace unidle::workloads::protein {

namespace {

constexpr std::string_view kPredictor = "peptide-ensemble";

[[noreturn]] void no_features(const std::string& sequence, const std::string& reason) {
  throw Error(ErrorCode::kInput, sequence, "has no structure features: " + reason);
}

cache::Entry predict(const std::string& sequence) {
  cache::Prediction prediction = ensemble_features(sequence);
  if (!prediction.error.empty()) {
    no_features(sequence, prediction.error);
  }
  return cache::Entry::of(std::move(prediction.tensors), false);
}

}  // namespace

Structures::Structures(const train::Config& config) : mode_(config.text("cache.features")) {
  if (mode_ == "disk") {
    const std::string& folder = config.text("cache.folder");
    cache::Options options;
    options.path = folder.empty() ? cache::default_folder() : std::filesystem::path(folder);
    store_.emplace(options);
    features_ = std::make_unique<cache::Features>(
        *store_, cache::FeatureOptions{.pool = {.make = [](std::stop_token) { return make_predictor(kPredictor); },
                                                .workers = static_cast<unsigned>(train::usable_cpus()),
                                                .items_per_batch = 1},  // it computes one at a time anyway
                                       .layout = {}});
  }
}

cache::Entry Structures::get(const std::string& sequence) {
  if (features_) {
    const cache::Feature feature = features_->get(sequence);
    if (!feature.good()) {
      no_features(sequence, feature.reason);
    }
    return feature.entry;
  }
  if (mode_ != "memory") {
    return predict(sequence);
  }
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = kept_.find(sequence); found != kept_.end()) {
      return found->second;
    }
  }
  cache::Entry entry = predict(sequence);  // at worst computed twice, when two threads ask at once
  const std::lock_guard lock(mutex_);
  return kept_.emplace(sequence, std::move(entry)).first->second;
}

void Structures::expect(const std::vector<std::string>& sequences) {
  if (features_) {
    features_->prefetch(sequences);
  }
}

std::uint64_t Structures::compute_ahead(const std::vector<std::string>& sequences) {
  if (!features_) {
    return 0;
  }
  const cache::Warmed warmed = features_->warm(
      sequences, {}, [](std::uint64_t) {},
      [](const std::string& sequence, const cache::Feature& why) { no_features(sequence, why.reason); });
  return warmed.computed;
}

}  // namespace unidle::workloads::protein
