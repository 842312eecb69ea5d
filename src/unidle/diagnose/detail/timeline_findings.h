// Parts of findings about a device's timeline that several rules share.
#pragma once

#include <string>

#include "unidle/diagnose/context.h"
#include "unidle/diagnose/diagnosis.h"

namespace unidle::diagnose::detail {

/// The signal that these rules need, in words.
inline constexpr const char* kTimelineMissing = "what device and host did kernel by kernel (a profiler's trace)";

/// The timeline when nothing else describes the run; nullptr otherwise. Rules about steps then use it, even with few
/// steps.
const DeviceTimeline* only_timeline(const Context& context);

/// A finding about a part of the device's idle time, with its first line of evidence.
Finding of_idle(const Context& context, const Policy& policy, double share);

/// Adds the host event in the longest gap, and a warning when the profiler itself slows the host down.
void add_caveats(const Context& context, Finding& finding);

}  // namespace unidle::diagnose::detail
