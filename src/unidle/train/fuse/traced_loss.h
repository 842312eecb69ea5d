// The loss of a micro-batch as a program that Python can read and compile.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "unidle/train/step/precision.h"
#include "unidle/train/workload.h"

namespace unidle::train {

struct TracedLoss {
  std::string script;       // a TorchScript file: all tensors in, the loss out
  std::string description;  // JSON, for fuse.py: the tensors, the device, the precision
};

/// What the loss reads, in this order: parameters that learn, other parameters, buffers.
std::vector<at::Tensor> learning_parameters(const torch::nn::Module& model);
std::vector<at::Tensor> other_state(const torch::nn::Module& model);

/// Whether a loss is traced now: what is not made of torch's operations cannot be recorded, and is to be done by them.
bool tracing_a_loss();

/// Calls workload.loss(fields) once and records what it does. Draws random numbers and changes buffers, as it does.
/// Throws what it throws, and what torch throws for what cannot be recorded.
TracedLoss trace_loss(Workload& workload, const std::vector<at::Tensor>& fields, const Precision& precision,
                      at::Device device);

}  // namespace unidle::train
