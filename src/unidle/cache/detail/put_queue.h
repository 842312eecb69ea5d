// Entries that wait to be stored. While the disk is waited for, others pile up, and go together the next time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "unidle/cache/detail/state.h"
#include "unidle/cache/store.h"

namespace unidle::cache::detail {

/// Thread-safe. Not for a forked child: make it after the fork.
class PutQueue {
 public:
  /// Gets the arrays, and whether they were stored. Must not throw.
  using Done = std::function<void(std::vector<Tensor> tensors, bool stored)>;

  PutQueue();
  /// Stores what is there.
  ~PutQueue();
  PutQueue(const PutQueue&) = delete;
  PutQueue& operator=(const PutQueue&) = delete;

  /// `done` is called once, on the queue's thread, and keeps the claim until then. All claims are of one store. Waits
  /// while the queue is full. Throws kUsage, and calls nothing, when the tensors are no entry.
  void add(const Claim& claim, std::vector<Tensor> tensors, Done done);

 private:
  struct Owner {
    std::shared_ptr<State> state;
    std::vector<Tensor> tensors;
    Done done;
  };
  struct Entries {
    std::vector<Incoming> entries;
    std::vector<Owner> owners;  // of the entries, in their order
    std::uint64_t bytes = 0;
  };
  void work(const std::stop_token& stop);
  static void store(Entries all);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  Entries waiting_;
  std::jthread thread_;  // the last: it uses the others
};

}  // namespace unidle::cache::detail
