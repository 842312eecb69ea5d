// Finds why a device was idle: what the host did in each gap before it launched the work that ended it.
#pragma once

#include <string>

#include "unidle/trace/detail/collector.h"
#include "unidle/trace/summary.h"

namespace unidle::trace::detail {

/// REQUIRES: `seen` is finished and has that device. `busy` is the device's work.
IdleTime idle_time(Collector& seen, const std::string& device, const TimeRanges& busy, const Span& window);

}  // namespace unidle::trace::detail
