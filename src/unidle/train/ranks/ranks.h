// Several processes that train one model together, each with its share of every batch.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace unidle::train {

/// Where this process stands among the others.
struct RankPlace {
  int rank = 0;
  int world = 1;
  int local_rank = 0;   // on this machine
  int local_world = 1;  // on this machine
  std::string address;  // of the first one
  std::uint16_t port = 0;
  bool store_is_there = false;  // torchrun's agent holds it; otherwise the first process does
  std::string prefix;           // of all keys in it

  /// As torchrun (RANK, WORLD_SIZE, MASTER_ADDR, ...) or a Slurm step (SLURM_PROCID, ...) says; nothing for a process
  /// of its own. Throws kUsage naming the variable that is missing or wrong.
  static std::optional<RankPlace> from_environment();
};

/// Their connection: c10d over Gloo, and over NCCL between GPUs. All processes make the same calls in the same order.
/// One thread.
class Ranks {
 public:
  /// Waits until all have joined. Throws kChild, naming those who did not and the address, after `timeout`; no call
  /// waits longer for another process than that either.
  Ranks(const RankPlace& place, std::chrono::seconds timeout);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// Tensors on this device go from GPU to GPU by NCCL from now on, where it can be had; does nothing for a CPU.
  /// Throws kMissing, naming them, where two processes have the same GPU: NCCL would not have it.
  void use_device(at::Device device);

  int rank() const { return place_.rank; }
  int world() const { return place_.world; }
  bool first() const { return place_.rank == 0; }

  /// Throws kInput, naming the first setting that differs, where this process has others than the first one: each would
  /// train another model, or wait for batches that do not come.
  void agree_on(const std::map<std::string, std::string>& settings);

  /// All get the first one's values.
  void broadcast(std::vector<at::Tensor> tensors);
  /// The sum over all, in place. On a GPU it is queued there.
  void sum(at::Tensor tensor);
  /// Row r is the tensor of rank r. All of one size.
  at::Tensor gather(const at::Tensor& row);

  /// From now on backward passes of these parameters are joined, see before_backward().
  void join_gradients(const std::vector<at::Tensor>& parameters);
  /// The next backward pass leaves in the gradients the mean over all processes. They travel in buckets while it goes
  /// on. Passes without this call add up on their own, for accumulation.
  void before_backward(const at::Tensor& loss);

  /// Called in a catch block: tells the others why this one ends, or learns why another one did. Throws kChild with
  /// that one's message where it was another one, and what is being handled otherwise.
  [[noreturn]] void end_all();

 private:
  void refuse_shared(at::Device device);
  void wait_until_heard();

  struct Impl;
  RankPlace place_;
  std::chrono::seconds timeout_;
  std::unique_ptr<Impl> impl_;
};

/// The first machine of a Slurm list: "n[03-05,9],m1" -> "n03".
std::string first_host(const std::string& list);

}  // namespace unidle::train
