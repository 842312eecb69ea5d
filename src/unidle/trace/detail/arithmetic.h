// The floating-point operations of a trace, or nothing where the count is not sure.
#pragma once

#include <vector>

#include "unidle/trace/detail/collector.h"
#include "unidle/trace/detail/ranges.h"
#include "unidle/trace/summary.h"

namespace unidle::trace::detail {

/// Of the operators that the host calls within `steps`, by type, most first. Empty when one of them cannot be counted,
/// or when the steps have other work that may be products: a graph's, or that of kernels outside of these operators.
std::vector<FlopsOfType> flops_within(Collector& seen, const Span& steps);

}  // namespace unidle::trace::detail
