// A pool of workers that compute predictions in batches.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/cache/predictor.h"

namespace unidle::cache {

struct PoolOptions {
  PredictorFactory make;
  unsigned workers = 1;
  /// Maximum cost of a batch, its longest input times its number of inputs (as if padded); a single input may exceed
  /// it.
  std::uint64_t tokens_per_batch = 4096;
  std::size_t items_per_batch = 256;
  /// Maximum of unfinished inputs; beyond it submit() waits and try_submit() refuses.
  std::size_t most_items = 4096;
  /// An input that crashes this many workers, alone in its batch, is given up.
  int poison_after = 2;
  /// A worker that fails to start this often in a row is given up; when all are, everything fails.
  int starts = 5;
  std::int64_t first_pause_ns = 100 * kNsPerMs;  // before a worker is restarted; doubled each time
  std::int64_t longest_pause_ns = 30 * kNsPerSecond;
  Clock* clock = nullptr;  // null: the system clock
};

/// The outcome of an input.
struct PoolOutcome {
  enum class Kind {
    kDone,
    kRefused,    // the predictor rejects the input
    kPoison,     // it crashed workers
    kNoWorkers,  // no predictor works
    kCancelled,
  };
  Kind kind = Kind::kCancelled;
  std::vector<Tensor> tensors;
  std::string reason;
};

struct PoolCounts {
  std::uint64_t batches = 0;
  std::uint64_t items = 0;
  std::uint64_t padded_tokens = 0;  // cost of the batches
  std::uint64_t tokens = 0;         // tokens in the batches
  std::uint64_t starts = 0;
  std::uint64_t faults = 0;
};

/// Computes inputs of similar length together. A batch that crashes its worker is halved until the culprit is alone;
/// the others are computed. Before the first success, some inputs are tried alone, so that a predictor that always
/// fails is given up in seconds. Thread-safe. Not usable in a forked child: create it after the fork.
class PredictorPool {
 public:
  using Done = std::function<void(PoolOutcome)>;

  explicit PredictorPool(PoolOptions options);
  /// Stops the workers; waiting inputs get kCancelled.
  ~PredictorPool();
  PredictorPool(const PredictorPool&) = delete;
  PredictorPool& operator=(const PredictorPool&) = delete;

  /// The facts that all its workers share; waits for the first to start. Throws the error that prevented it.
  PredictorFacts facts();

  /// `done` is called once, on a thread of the pool, and must not throw. submit() waits while the pool is full.
  void submit(std::string input, Done done);
  /// Returns false without taking the input when the pool is full.
  bool try_submit(const std::string& input, const Done& done);

  PoolCounts counts() const;

 private:
  struct Item {
    std::string input;
    Done done;
    int crashes = 0;  // workers that crashed with this input alone
    std::uint64_t number = 0;
  };
  using Batch = std::vector<Item>;

  void work(std::stop_token stop);
  /// Waits for work; returns an empty batch at the end.
  Batch take(std::stop_token stop);
  Batch gather();
  std::unique_ptr<Predictor> start(std::stop_token stop, int& failed_starts);
  void compute(std::unique_ptr<Predictor>& predictor, Batch batch, std::stop_token stop);
  void after_fault(Batch batch, const std::string& reason);
  void try_alone(Batch batch);
  /// True when some input was computed.
  bool has_worked() const;
  /// True when the predictor has failed for every input.
  bool never_works() const;
  void finish(Item& item, PoolOutcome outcome);
  void worker_is_lost(const std::string& reason, ErrorCode code);
  void add(Item item);
  std::string last_fault() const;

  PoolOptions options_;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::multimap<std::size_t, Item> waiting_;  // by length
  std::deque<Batch> again_;                   // parts of batches that crashed a worker
  std::size_t items_ = 0;                     // unfinished
  std::uint64_t next_number_ = 0;
  std::optional<PredictorFacts> facts_;
  unsigned lost_workers_ = 0;
  std::string lost_reason_;
  ErrorCode lost_code_ = ErrorCode::kChild;
  std::string last_fault_;
  int lone_faults_ = 0;  // inputs that crashed a worker alone
  PoolCounts counts_;
  std::vector<std::jthread> workers_;
};

}  // namespace unidle::cache
