// Weights of a model by name, as files that Python reads and writes: torch's and safetensors.
#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <string>

#include "unidle/train/checkpoints/checkpoint.h"

namespace unidle::train {

/// Names as in Python's state_dict.
using Weights = Snapshot::Named;

/// The parameters and buffers of a checkpoint; with `averaged`, the averaged parameters when it has any.
Weights weights_of(const Snapshot& snapshot, bool averaged);

/// The extension chooses the format: .safetensors, or otherwise a file for torch.load(path, weights_only=True). Throws
/// kIo.
void write_weights(const std::filesystem::path& path, const Weights& weights);

/// Reads a file of either kind, a checkpoint of any name, or a folder of checkpoints. Throws kInput for anything else.
Weights read_weights(const std::filesystem::path& path);

/// Copies the weights into the model. Throws kInput naming `path` when a name or shape does not match; nothing has
/// changed then.
void load_weights(torch::nn::Module& model, const Weights& weights, const std::string& path);

}  // namespace unidle::train
