// The whole state of a run as one file that torch.load() reads too.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "unidle/train/step/ema.h"
#include "unidle/train/step/optimizer.h"
#include "unidle/train/step/precision.h"

namespace unidle::train {

struct Position {
  std::int64_t samples = 0;  // seen so far, on all ranks; the loader's whole state
  std::int64_t steps = 0;    // the schedule's whole state
};

/// What a run's future depends on, where it lives while the run goes on.
struct LiveState {
  std::string workload;
  std::int64_t seed;  // of the order of samples
  torch::nn::Module& model;
  Optimizer& optimizer;
  Precision& precision;
  AveragedWeights& averaged;
  at::Device device;
};

/// The generators that training draws from, a row each rank: u8 [ranks, bytes].
struct RandomStates {
  at::Tensor host;
  at::Tensor device;  // undefined on a CPU
};

/// Of this process alone: one row.
RandomStates own_random_states(at::Device device);

/// A copy of it on the host: nothing in it is shared with the run.
struct Snapshot {
  using Named = std::vector<std::pair<std::string, at::Tensor>>;

  std::string workload;
  std::int64_t seed = 0;
  std::string optimizer_name;
  Position position;
  Named parameters;
  Named buffers;
  std::vector<at::Tensor> averages;  // one a parameter, or none
  std::vector<at::Tensor> optimizer;
  std::vector<at::Tensor> scaler;
  RandomStates random;

  std::int64_t ranks() const { return random.host.size(0); }
};

/// Of the generator that training draws from on `device`: u8 [bytes].
at::Tensor random_state(at::Device device);
void set_random_state(at::Device device, const at::Tensor& state);

/// Copies the state into `snapshot`, whose memory is used again. Waits for the device.
void take(Snapshot& snapshot, const LiveState& state, const Position& position);

/// Gives the run the state of `snapshot`, the random generators of rank `rank` too; training goes on bit for bit as if
/// it had not stopped (on a CPU). `path` is for messages. Throws kInput when it is of another workload, seed, model,
/// update rule or number of ranks; then nothing has changed.
void restore(const Snapshot& snapshot, const LiveState& state, int rank, int ranks, const std::string& path);

/// The file's bytes. Any thread.
std::vector<char> to_bytes(const Snapshot& snapshot);
/// Throws kCorrupt naming `path` for what is damaged or no checkpoint, kInput for one of another version.
Snapshot from_bytes(const std::string& bytes, const std::string& path);
/// The same of a file. Throws kInput when it cannot be read.
Snapshot read_checkpoint(const std::filesystem::path& path);

}  // namespace unidle::train
