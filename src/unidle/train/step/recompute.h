// Gradient checkpointing: less memory for more arithmetic.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace unidle::train {

/// Computes function(inputs) without keeping intermediate results: the backward pass runs `function` again, in the same
/// autocast mode and with the same random numbers. `function` must be deterministic and used in one backward pass only.
/// All tensors with a graph that it reads must be in `inputs`, except for parameters; the first input needs a gradient.
at::Tensor recompute(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function,
                     const std::vector<at::Tensor>& inputs);

}  // namespace unidle::train
