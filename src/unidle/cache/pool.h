// Several workers that compute predictions, fed with batches.
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
  /// A batch costs its longest input times its number of inputs, as if they were padded; at most this, or one input.
  std::uint64_t tokens_per_batch = 4096;
  std::size_t items_per_batch = 256;
  /// Inputs that wait or are being computed; beyond that submit() waits and try_submit() refuses.
  std::size_t most_items = 4096;
  /// An input that brings a worker down this often, alone in its batch, is given up.
  int poison_after = 2;
  /// A worker that cannot be started this often in a row is not tried any more; when that is true of all, all fails.
  int starts = 5;
  std::int64_t first_pause_ns = 100 * kNsPerMs;  // before a worker is started again; doubled each time
  std::int64_t longest_pause_ns = 30 * kNsPerSecond;
  Clock* clock = nullptr;  // the real one
};

/// What became of an input.
struct PoolOutcome {
  enum class Kind {
    kDone,
    kRefused,    // the predictor says that the input is wrong
    kPoison,     // it brought workers down
    kNoWorkers,  // there is no predictor that works
    kCancelled,
  };
  Kind kind = Kind::kCancelled;
  std::vector<Tensor> tensors;
  std::string reason;
};

struct PoolCounts {
  std::uint64_t batches = 0;
  std::uint64_t items = 0;
  std::uint64_t padded_tokens = 0;  // what the batches cost
  std::uint64_t tokens = 0;         // what was in them
  std::uint64_t starts = 0;
  std::uint64_t faults = 0;
};

/// Inputs of similar length are computed together. A batch that brings its worker down is halved until the input that
/// does it is alone; the others are computed. Before anything was computed, some are tried alone at once, so that a
/// predictor that fails whatever it is given is given up in seconds. Thread-safe. Not for a forked child: make it after
/// the fork.
class PredictorPool {
 public:
  using Done = std::function<void(PoolOutcome)>;

  explicit PredictorPool(PoolOptions options);
  /// Stops the workers; what waits is told that it was cancelled.
  ~PredictorPool();
  PredictorPool(const PredictorPool&) = delete;
  PredictorPool& operator=(const PredictorPool&) = delete;

  /// What all its workers are; waits for the first to start. Throws what kept it from starting.
  PredictorFacts facts();

  /// `done` is called once, on a thread of the pool, and must not throw. submit() waits while the pool is full.
  void submit(std::string input, Done done);
  /// False, with nothing taken, when the pool is full.
  bool try_submit(const std::string& input, const Done& done);

  PoolCounts counts() const;

 private:
  struct Item {
    std::string input;
    Done done;
    int falls = 0;  // of workers that had it alone
    std::uint64_t number = 0;
  };
  using Batch = std::vector<Item>;

  void work(std::stop_token stop);
  /// Waits for something to do; empty when there is nothing more.
  Batch take(std::stop_token stop);
  Batch gather();
  std::unique_ptr<Predictor> start(std::stop_token stop, int& failed_starts);
  void compute(std::unique_ptr<Predictor>& predictor, Batch batch, std::stop_token stop);
  void after_fault(Batch batch, const std::string& reason);
  void try_alone(Batch batch);
  /// Something was computed.
  bool has_worked() const;
  /// Nothing was, whatever it was given.
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
  std::deque<Batch> again_;                   // parts of batches that brought a worker down
  std::size_t items_ = 0;                     // that are not finished
  std::uint64_t next_number_ = 0;
  std::optional<PredictorFacts> facts_;
  unsigned lost_workers_ = 0;
  std::string lost_reason_;
  ErrorCode lost_code_ = ErrorCode::kChild;
  std::string last_fault_;
  int lone_faults_ = 0;  // inputs that brought a worker down alone
  PoolCounts counts_;
  std::vector<std::jthread> workers_;
};

}  // namespace unidle::cache
