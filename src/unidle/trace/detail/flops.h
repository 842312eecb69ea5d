// Floating-point operations of an operator, from the shapes that a profiler writes with record_shapes=True.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unidle/trace/detail/events.h"

namespace unidle::trace::detail {

/// Whether flops_of() knows the operator; only then does the reader keep shapes.
bool has_flops(std::string_view name);

/// FLOPs (multiplications and additions) of one call. Matrix products, convolutions and attention, forward and
/// backward, are counted as torch.utils.flop_counter does. Recurrent layers are counted as well. What attention's
/// backward pass recomputes is not counted. Nothing for other operators, and for shapes that are missing or impossible:
/// then the sum is not known either.
std::optional<double> flops_of(const TraceEvent& event);

/// Whether it multiplies sparse matrices, whose shapes do not tell how many entries they have.
bool multiplies_sparse(const TraceEvent& event);

/// "bf16", "fp16", "fp32", "fp8", "fp64"; otherwise the name as written.
std::string number_type(const TraceEvent& event);

}  // namespace unidle::trace::detail
