// What a profiler trace tells, whether it lay in a file of its own or in a record.
#pragma once

#include <optional>
#include <string>

#include "unidle/diagnose/signals.h"
#include "unidle/language/language.h"
#include "unidle/trace/summary.h"

namespace unidle::diagnose::detail {

/// Busy time, longest gap and kernels of one device, in one line.
std::string describe(const trace::TraceSummary& trace, const trace::DeviceUse& device, Language language);

/// What its busiest device did, where `train` of the wall time is like the trace's window; nothing without a device.
std::optional<DeviceTimeline> timeline_of(const trace::TraceSummary& trace, double train);

/// Kernels, and the memory that copies came from where nobody told yet. Without a device in the trace nothing changes.
void add_kernel_facts(const trace::TraceSummary& trace, Signals& signals);

}  // namespace unidle::diagnose::detail
