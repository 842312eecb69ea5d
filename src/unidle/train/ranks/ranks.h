// Several processes that train one model, each on its share of every batch.
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

/// A process's place among the ranks.
struct RankPlace {
  int rank = 0;
  int world = 1;
  int local_rank = 0;   // on this machine
  int local_world = 1;  // on this machine
  std::string address;  // of the first rank
  std::uint16_t port = 0;
  bool store_exists = false;  // owned by torchrun's agent; otherwise by the first process
  std::string prefix;         // of all its keys

  /// From the variables of torchrun (RANK, WORLD_SIZE, MASTER_ADDR, ...) or a Slurm step (SLURM_PROCID, ...); nothing
  /// for a single process. Throws kUsage naming the variable that is missing or wrong.
  static std::optional<RankPlace> from_environment();
};

/// The connection of the processes: c10d over Gloo, and over NCCL between GPUs. All processes must make the same calls
/// in the same order. One thread.
class Ranks {
 public:
  /// Waits until all processes have joined. Throws kChild after `timeout`, naming the address and those that did not;
  /// no later call waits longer than that for another process.
  Ranks(const RankPlace& place, std::chrono::seconds timeout);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// From now on sends tensors on this device between GPUs over NCCL, when available; does nothing for a CPU. Throws
  /// kMissing naming two processes that share a GPU, which NCCL does not support.
  void use_device(at::Device device);

  int rank() const { return place_.rank; }
  int world() const { return place_.world; }
  bool first() const { return place_.rank == 0; }

  /// Throws kInput, naming the first difference, when this process's settings differ from the first process's: each
  /// would train a different model, or wait for batches that never come.
  void agree_on(const std::map<std::string, std::string>& settings);

  /// Copies the first process's values to all.
  void broadcast(std::vector<at::Tensor> tensors);
  /// The sum over all processes, in place. On a GPU it is queued.
  void sum(at::Tensor tensor);
  /// Row r of the result is the tensor of rank r. All have the same size.
  at::Tensor gather(const at::Tensor& row);

  /// From now on backward passes over these parameters average gradients, see before_backward().
  void join_gradients(const std::vector<at::Tensor>& parameters);
  /// After the next backward pass the gradients hold the mean over all processes; they are reduced in buckets during
  /// the pass. Passes without this call accumulate locally.
  void before_backward(const at::Tensor& loss);

  /// Call in a catch block: reports to the others why this process ends, or learns why another one did. Throws kChild
  /// with the other's message in that case, otherwise rethrows the current exception.
  [[noreturn]] void end_all();

 private:
  void refuse_shared(at::Device device);
  void wait_for_acknowledgement();

  struct Impl;
  RankPlace place_;
  std::chrono::seconds timeout_;
  std::unique_ptr<Impl> impl_;
};

/// The first host of a Slurm list: "n[03-05,9],m1" -> "n03".
std::string first_host(const std::string& list);

}  // namespace unidle::train
