// A queue of entries to be stored. Entries that arrive while the disk is busy are stored together.
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

/// Thread-safe. Not usable in a forked child: create it after the fork.
class PutQueue {
 public:
  /// Receives the arrays and whether they were stored. Must not throw.
  using Done = std::function<void(std::vector<Tensor> tensors, bool stored)>;

  PutQueue();
  /// Stores the remaining entries.
  ~PutQueue();
  PutQueue(const PutQueue&) = delete;
  PutQueue& operator=(const PutQueue&) = delete;

  /// `done` is called once, on the queue's thread; the claim is kept until then. All claims must be of one store. Waits
  /// while the queue is full. Throws kUsage for an invalid entry, without calling `done`.
  void add(const Claim& claim, std::vector<Tensor> tensors, Done done);

 private:
  struct Owner {
    std::shared_ptr<State> state;
    std::vector<Tensor> tensors;
    Done done;
  };
  struct Entries {
    std::vector<Incoming> entries;
    std::vector<Owner> owners;  // of the entries, in the same order
    std::uint64_t bytes = 0;
  };
  void work(const std::stop_token& stop);
  static void store(Entries all);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  Entries waiting_;
  std::jthread thread_;  // last, because it uses the other members
};

}  // namespace unidle::cache::detail
