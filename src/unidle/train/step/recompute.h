// Gradient checkpointing: less memory for more arithmetic.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

namespace unidle::train {

/// function(inputs) without keeping what lies between: the backward pass runs `function` again, in the same autocast
/// mode and from the same random numbers. `function` must give the same result then, and be called from one backward
/// pass only. All tensors with a graph that it takes are among `inputs`, the first of which needs a gradient; of its
/// parameters there may be any.
at::Tensor recompute(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function,
                     const std::vector<at::Tensor>& inputs);

}  // namespace unidle::train
