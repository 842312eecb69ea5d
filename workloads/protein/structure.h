// Structure features of peptides, predicted when they are asked for or kept.
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

/// How features come: cache.features off (predicted each time, by the thread that asks), memory (kept by this process)
/// or disk (the feature cache, filled by a pool of predictors, for all processes and runs). Thread-safe.
class Structures {
 public:
  explicit Structures(const train::Config& config);

  /// Throws kInput naming the sequence when the predictor refuses it.
  cache::Entry get(const std::string& sequence);
  /// expect() is of use: there is a cache on disk, and so a pool of predictors.
  bool computes_ahead() const { return features_ != nullptr; }
  /// These will be asked for soon: what the cache on disk lacks of them is computed meanwhile. Returns at once.
  void expect(const std::vector<std::string>& sequences);
  /// Computes what the cache on disk lacks of these; how many. Nothing with other caches. Throws as get().
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
