// Weights of a model by name, as files that Python reads and writes: torch's and safetensors.
#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <string>

#include "unidle/train/checkpoints/checkpoint.h"

namespace unidle::train {

/// Names as in Python's state_dict.
using Weights = Snapshot::Named;

/// The parameters and buffers of a checkpoint; the averaged parameters when `averaged` and there are any.
Weights weights_of(const Snapshot& snapshot, bool averaged);

/// As `path` ends: .safetensors, or anything else for a file that torch.load(path, weights_only=True) reads. Throws
/// kIo.
void write_weights(const std::filesystem::path& path, const Weights& weights);

/// A file of either kind, or a checkpoint, whatever its name, or a folder of checkpoints. Throws kInput when it is
/// none.
Weights read_weights(const std::filesystem::path& path);

/// Gives the model these weights. Throws kInput naming `path` when a name or shape does not fit; then nothing has
/// changed.
void load_weights(torch::nn::Module& model, const Weights& weights, const std::string& path);

}  // namespace unidle::train
