// Notices that another process is gone, where the calls that wait for it would not.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

namespace unidle::train {

/// NCCL on one machine waits for a killed peer until its time-out; a connection of Gloo fails at once. So each rank
/// waits, in a thread of its own, for a word of the rank before it that comes at the end. A rank that loses its
/// neighbour ends as well, so that the loss goes round.
class PeerWatch {
 public:
  /// `on_loss` is called at most once, by that thread, when the rank before this one closed its connection without
  /// done(), and not after the destructor. `gloo` has at least two ranks; nothing else is sent over it from one rank to
  /// another.
  PeerWatch(c10::intrusive_ptr<c10d::Backend> gloo, std::function<void()> on_loss);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  /// Watches no longer. Does not wait for others.
  ~PeerWatch();

  /// This rank needs the others no more: its end is no loss. Does nothing where they are gone already.
  void done();

 private:
  void watch(const std::function<void()>& on_loss);

  c10::intrusive_ptr<c10d::Backend> gloo_;
  std::vector<at::Tensor> word_;
  c10::intrusive_ptr<c10d::Work> coming_;
  std::thread thread_;
};

}  // namespace unidle::train
