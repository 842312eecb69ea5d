// Gradient checkpointing: less memory for more arithmetic.
#pragma once

#include <ATen/ATen.h>

#include <functional>

namespace unidle::train {

/// function(input) without keeping what lies between: the backward pass runs `function` again, in the same autocast
/// mode and from the same random numbers. `function` must give the same result then, and be called from one backward
/// pass only.
at::Tensor recompute(const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& input);

}  // namespace unidle::train
