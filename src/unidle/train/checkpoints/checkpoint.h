// The whole state of a run as one file, which torch.load() can read.
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

/// References to the state that determines the rest of a run.
struct LiveState {
  std::string workload;
  std::int64_t seed;  // of the order of samples
  torch::nn::Module& model;
  Optimizer& optimizer;
  Precision& precision;
  AveragedWeights& averaged;
  at::Device device;
};

/// States of the generators that training draws from, one row per rank: u8 [ranks, bytes].
struct RandomStates {
  at::Tensor host;
  at::Tensor device;  // undefined on a CPU
};

/// Those of this process only: one row.
RandomStates own_random_states(at::Device device);

/// A copy of the state on the host; shares nothing with the run.
struct Snapshot {
  using Named = std::vector<std::pair<std::string, at::Tensor>>;

  std::string workload;
  std::int64_t seed = 0;
  std::string optimizer_name;
  Position position;
  Named parameters;
  Named buffers;
  std::vector<at::Tensor> averages;  // one per parameter, or empty
  std::vector<at::Tensor> optimizer;
  std::vector<at::Tensor> scaler;
  RandomStates random;

  std::int64_t ranks() const { return random.host.size(0); }
};

/// State of the generator that training draws from on `device`: u8 [bytes].
at::Tensor random_state(at::Device device);
void set_random_state(at::Device device, const at::Tensor& state);

/// Copies the state into `snapshot`, reusing its memory. Waits for the device.
void take(Snapshot& snapshot, const LiveState& state, const Position& position);

/// Restores the state of `snapshot`, including the random generators of rank `rank`; on a CPU, training then continues
/// bit for bit as if it had not stopped. `path` is for messages. Throws kInput when the snapshot is of another
/// workload, seed, model, update rule or number of ranks; nothing has changed then.
void restore(const Snapshot& snapshot, const LiveState& state, int rank, int ranks, const std::string& path);

/// Serializes the snapshot. Callable from any thread.
std::vector<char> to_bytes(const Snapshot& snapshot);
/// Throws kCorrupt naming `path` when the bytes are damaged or not a checkpoint, kInput for another version.
Snapshot from_bytes(const std::string& bytes, const std::string& path);
/// The same for a file. Throws kInput when it is not readable.
Snapshot read_checkpoint(const std::filesystem::path& path);

}  // namespace unidle::train
