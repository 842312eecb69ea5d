// The whole state of a run in one file that torch.load() reads too.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <filesystem>

#include "unidle/train/optimizer.h"
#include "unidle/train/precision.h"

namespace unidle::train {

struct Position {
  std::int64_t samples = 0;  // seen so far; the loader's whole state
  std::int64_t steps = 0;    // the schedule's whole state
};

/// Replaces `path` in one move: after a crash or on a full disk the old file is whole. Throws kIo naming it.
void save_checkpoint(const std::filesystem::path& path, const torch::nn::Module& model, const AdamW& optimizer,
                     const Precision& precision, const Position& position);

/// Restores everything, the random generators too; training goes on bit for bit as if it had not stopped (on a CPU).
/// Throws kInput when `path` is unreadable or of another model.
Position load_checkpoint(const std::filesystem::path& path, torch::nn::Module& model, AdamW& optimizer,
                         Precision& precision);

}  // namespace unidle::train
