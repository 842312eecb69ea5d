// Structure features of peptides, predicted on demand or cached.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "unidle/cache/features.h"
#include "unidle/cache/store.h"
#include "unidle/train/config.h"

namespace unidle::workloads::protein {

/// The source of features follows cache.features: off (predicted on every request, by the requesting thread), memory
/// (kept by this process) or disk (the feature cache, filled by a pool of predictors, shared by all processes and
/// runs). Thread-safe.
class Structures {
 public:
  explicit Structures(const train::Config& config);

  /// Throws kInput naming the sequence when the predictor refuses it.
  cache::Entry get(const std::string& sequence);
  /// Whether expect() has an effect: there is a cache on disk with a pool of predictors.
  bool computes_ahead() const { return features_ != nullptr; }
  /// Announces sequences that will be requested soon: those missing in the cache on disk are computed in the
  /// background. Returns at once.
  void expect(const std::vector<std::string>& sequences);
  /// Computes the features missing in the cache on disk; returns how many. Does nothing with other caches. Throws as
  /// get().
  std::uint64_t compute_ahead(const std::vector<std::string>& sequences);
  const std::string& mode() const { return mode_; }

 private:
  std::string mode_;
  std::optional<cache::Store> store_;
  std::unique_ptr<cache::Features> features_;
  std::mutex mutex_;
  std::map<std::string, cache::Entry, std::less<>> kept_;
};

}  // namespace unidle::workloads::protein
