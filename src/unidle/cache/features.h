// The cache and the predictors that fill it.
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
  std::string parameters = "{}";  // canonical: they are part of the keys
  std::string layout;
};

/// Of one input: its entry, or why there is none.
struct Feature {
  Entry entry;
  PoolOutcome::Kind kind = PoolOutcome::Kind::kDone;
  std::string reason;

  bool good() const { return kind == PoolOutcome::Kind::kDone; }
};

struct Warmed {
  std::uint64_t inputs = 0;
  std::uint64_t there = 0;  // before
  std::uint64_t computed = 0;
  std::uint64_t unstored = 0;  // of the computed: the disk was full, or there was no room
  std::uint64_t failed = 0;
};

/// Features of inputs, out of the cache where they are there, computed and stored where not. Each is computed once,
/// however many threads and processes ask. Inputs that were refused or brought workers down are answered from memory
/// when they come again. Thread-safe. Not for a forked child: make it after the fork.
class Features {
 public:
  /// Waits until the first predictor runs: the keys hold what it is. Throws what kept it from that.
  Features(Store& store, FeatureOptions options);
  ~Features();
  Features(const Features&) = delete;
  Features& operator=(const Features&) = delete;

  Key key(std::string_view input) const;
  /// In the order of the inputs; waits for all.
  std::vector<Feature> get(std::span<const std::string> inputs);
  Feature get(const std::string& input);

  /// Has inputs computed that will be asked for soon, and returns at once. Takes fewer than all when the pool is full,
  /// and none while what is computed cannot be stored; how many of the first it looked at. Calling it again with the
  /// others goes on.
  std::size_t prefetch(std::span<const std::string> inputs);

  /// Sees to it that all inputs are there; inputs that were there before cost next to nothing, so that what was
  /// interrupted goes on. `failed` gets inputs without a feature, and why. `progress` gets the inputs that are done.
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
  /// The feature, or the promise of it, or that another process is at it.
  Answer ask(const Key& key, const std::string& input, bool wait_for_room);
  /// Waits for another process, or computes what that did not; kCancelled on a stop.
  Feature wait_elsewhere(const Key& key, const std::string& input, std::stop_token stop);
  struct Computing;
  PredictorPool::Done when_done(Claim claim, std::shared_ptr<std::promise<Feature>> promise);
  void finish(Computing& computing, Feature feature);

  Store& store_;
  FeatureOptions options_;
  std::mutex mutex_;
  std::unordered_map<Key, Pending> pending_;
  std::unordered_map<Key, Feature> refused_;
  std::atomic<bool> stores_{true};               // what was computed last was stored
  std::unique_ptr<detail::PutQueue> put_queue_;  // its thread uses what is above
  PredictorPool pool_;                           // its threads use the others
  PredictorFacts facts_;
};

}  // namespace unidle::cache
