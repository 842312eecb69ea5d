// Floating-point operations of an operator, from the shapes that a profiler writes with record_shapes=True.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unidle/trace/detail/events.h"

namespace unidle::trace::detail {

/// Whether flops_of() knows the operator; only then does the reader keep shapes.
bool has_flops(std::string_view name);

/// Multiplications and additions of one call, as torch.utils.flop_counter counts them: matrix products, convolutions
/// and attention, forward and backward; here also recurrent layers. Attention's backward pass counts without the part
/// that it computes again. Nothing for other operators and for missing or odd shapes.
std::optional<double> flops_of(const TraceEvent& event);

/// "bf16", "fp16", "fp32", "fp8", "fp64"; otherwise the name as written.
std::string number_type(const TraceEvent& event);

}  // namespace unidle::trace::detail
