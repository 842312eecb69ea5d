// Records the loss of a micro-batch as a program that Python can read and compile.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "unidle/train/step/precision.h"
#include "unidle/train/workload.h"

namespace unidle::train {

struct TracedLoss {
  std::string script;       // a TorchScript file: takes all tensors, returns the loss
  std::string description;  // JSON, for fuse.py: the tensors, the device, the precision
};

/// The tensors that the loss reads, in this order: parameters that require gradients, other parameters, buffers.
std::vector<at::Tensor> learning_parameters(const torch::nn::Module& model);
std::vector<at::Tensor> other_state(const torch::nn::Module& model);

/// Whether a loss is being traced: only torch operations can be recorded, so workloads must then use them instead of
/// their own kernels.
bool tracing_a_loss();

/// Calls workload.loss(fields) once and records its operations. Draws random numbers and changes buffers, as the loss
/// does. Throws what the loss throws, and what torch throws for operations that cannot be recorded.
TracedLoss trace_loss(Workload& workload, const std::vector<at::Tensor>& fields, const Precision& precision,
                      at::Device device);

}  // namespace unidle::train
