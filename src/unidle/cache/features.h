// Combines the cache with the predictors that fill it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "unidle/cache/pool.h"
#include "unidle/cache/store.h"

namespace unidle::cache {

struct FeatureOptions {
  PoolOptions pool;
  std::string parameters = "{}";  // canonical JSON, since it is part of the keys
  std::string layout;
};

/// The entry of one input, or why there is none.
struct Feature {
  Entry entry;
  PoolOutcome::Kind kind = PoolOutcome::Kind::kDone;
  std::string reason;

  bool good() const { return kind == PoolOutcome::Kind::kDone; }
};

struct Warmed {
  std::uint64_t inputs = 0;
  std::uint64_t there = 0;  // already stored
  std::uint64_t computed = 0;
  std::uint64_t unstored = 0;  // computed but not stored: the disk was full, or there was no room
  std::uint64_t failed = 0;
};

/// Features of inputs, from the cache or computed and stored. Each is computed once, regardless of how many threads and
/// processes ask. Inputs that were refused or crashed workers are answered from memory. Thread-safe. Not usable in a
/// forked child: create it after the fork.
class Features {
 public:
  /// Waits until the first predictor runs, since the keys include its identity. Throws the error that prevented it.
  Features(Store& store, FeatureOptions options);
  ~Features();
  Features(const Features&) = delete;
  Features& operator=(const Features&) = delete;

  Key key(std::string_view input) const;
  /// Returns features in the order of the inputs; waits for all.
  std::vector<Feature> get(std::span<const std::string> inputs);
  Feature get(const std::string& input);

  /// Starts computing inputs that will be requested soon, and returns at once. Takes fewer when the pool is full, and
  /// none while results cannot be stored. Returns how many of the first inputs it handled; call again with the rest.
  std::size_t prefetch(std::span<const std::string> inputs);

  /// Computes all missing inputs; existing ones are nearly free, so an interrupted run can be repeated. `failed`
  /// receives inputs without a feature, and the reason. `progress` receives the number of finished inputs.
  Warmed warm(std::span<const std::string> inputs, std::stop_token stop,
              const std::function<void(std::uint64_t done)>& progress,
              const std::function<void(const std::string& input, const Feature& why)>& failed);

  PoolCounts counts() const { return pool_.counts(); }

 private:
  using Pending = std::shared_future<Feature>;
  enum class Asked { kThere, kPending, kElsewhere, kFull };
  struct Answer {
    Asked asked = Asked::kElsewhere;
    Feature feature;  // kThere
    Pending pending;  // kPending
  };
  /// Returns the feature, its promise, or that another process is computing it.
  Answer ask(const Key& key, const std::string& input, bool wait_for_room);
  /// Waits for another process, or computes what it did not; kCancelled on a stop.
  Feature wait_elsewhere(const Key& key, const std::string& input, std::stop_token stop);
  struct Computing;
  PredictorPool::Done when_done(Claim claim, std::shared_ptr<std::promise<Feature>> promise);
  void finish(Computing& computing, Feature feature);

  Store& store_;
  FeatureOptions options_;
  std::mutex mutex_;
  std::unordered_map<Key, Pending> pending_;
  std::unordered_map<Key, Feature> refused_;
  std::atomic<bool> stores_{true};               // the last result could be stored
  std::unique_ptr<detail::PutQueue> put_queue_;  // its thread uses the members above
  PredictorPool pool_;                           // its threads use the other members
  PredictorFacts facts_;
};

}  // namespace unidle::cache
