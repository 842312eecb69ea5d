// Findings about a device's timeline, which several rules build alike.
#pragma once

#include <string>

#include "unidle/diagnose/context.h"
#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose::detail {

/// The signal that rules about it need, in words.
inline constexpr const char* kTimelineMissing = "what device and host did kernel by kernel (a profiler's trace)";

/// The timeline where it alone describes the run; nullptr otherwise. Rules that look at steps take it then, however few
/// the steps.
const DeviceTimeline* only_timeline(const Context& context);

/// A finding of a part of the device's idle time, with what its evidence begins with.
Finding of_idle(const Context& context, const Policy& policy, double share);

/// What the profiler itself may have done to it, and what the host was in for longest.
void add_caveats(const Context& context, Finding& finding);

}  // namespace unidle::diagnose::detail
