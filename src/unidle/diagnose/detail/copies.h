// Helpers shared by the rules about copies to the device.
#pragma once

#include <optional>
#include <string>

#include "unidle/diagnose/context.h"

namespace unidle::diagnose::detail {

/// The signal that is missing to judge copies by the memory they come from; nothing when all are there.
std::optional<std::string> missing_for_copies(const Context& context);

/// The share of copied bytes that came from pinned memory, 0..1. REQUIRES: no signal is missing.
double pinned_part(const TransferFacts& facts);

/// The highest rate of the link to the device, in bytes/s: measured in a profiler's window, or computed from lanes and
/// generation. A virtual machine may report the values of a virtual bridge, so the best reported values count.
std::optional<double> link_rate(const Signals& signals, const Policy& policy);

/// Bytes/s of a link with `lanes` lanes of `generation`; nothing for an unknown generation.
std::optional<double> raw_link_rate(double lanes, double generation);

/// Share of the wall time that copies take in the compute stream: a lower bound, since no link is faster. Nothing when
/// a signal is missing.
std::optional<double> compute_stream_copy_share(const Context& context, const Policy& policy);

/// How much of `share`, the cost of `part` of the copies, pinned memory and non-blocking calls can win back: the copy
/// itself stays. All of it when the link is not known.
double beyond_copying(const Context& context, const Policy& policy, double share, double part);
/// The time of the copies in words, for a finding's evidence.
std::string copying_in_words(const Context& context, const Policy& policy);

}  // namespace unidle::diagnose::detail
