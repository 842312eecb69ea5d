// Detects that another process is gone when calls that wait for it do not.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

namespace unidle::train {

/// On one machine NCCL waits for a killed peer until its time-out; a Gloo connection fails at once. So each rank waits,
/// in a thread of its own, for a final message of the previous rank. A rank that loses its neighbour ends as well, so
/// that the loss propagates around the ring.
class PeerWatch {
 public:
  /// Calls `on_loss` at most once, on that thread and never after the destructor, when the previous rank closed its
  /// connection without done(). `gloo` has at least two ranks and carries no other point-to-point messages.
  PeerWatch(c10::intrusive_ptr<c10d::Backend> gloo, std::function<void()> on_loss);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  /// Stops watching. Does not wait for other ranks.
  ~PeerWatch();

  /// This rank no longer needs the others: its end is not a loss. Does nothing when they are already gone.
  void done();

 private:
  void watch(const std::function<void()>& on_loss);

  c10::intrusive_ptr<c10d::Backend> gloo_;
  std::vector<at::Tensor> word_;
  c10::intrusive_ptr<c10d::Work> coming_;
  std::thread thread_;
};

}  // namespace unidle::train
