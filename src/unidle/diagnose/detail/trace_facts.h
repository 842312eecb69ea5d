// Facts from a profiler trace, whether it is a separate file or part of a record.
#pragma once

#include <optional>
#include <string>

#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"
#include "unidle/trace/summary.h"

namespace unidle::diagnose::detail {

/// Busy time, longest gap and kernels of one device, in one line.
std::string describe(const trace::TraceSummary& trace, const trace::DeviceUse& device, Language language);

/// What the busiest device did, scaled so that the trace's window represents `train` of the wall time; nothing without
/// a device.
std::optional<DeviceTimeline> timeline_of(const trace::TraceSummary& trace, double train);

/// Adds kernel facts, and the kind of memory copied from unless already known. Without a device in the trace, nothing
/// changes.
void add_kernel_facts(const trace::TraceSummary& trace, Signals& signals);
/// Adds the operations of a step, if the profiler recorded shapes.
void add_flops(const trace::TraceSummary& trace, Signals& signals);

}  // namespace unidle::diagnose::detail
