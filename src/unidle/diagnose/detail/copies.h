// What the rules about copies to the device have in common.
#pragma once

#include <optional>
#include <string>

#include "unidle/diagnose/context.h"

namespace unidle::diagnose::detail {

/// The signal that is missing to judge copies to a device by the memory they come from; nothing when all are there.
std::optional<std::string> missing_for_copies(const Context& context);

/// The part of the copied bytes that came from pinned memory, 0..1. Only when nothing is missing.
double pinned_part(const TransferFacts& facts);

/// Bytes/s that the link to the device carries at most: as a profiler's window saw them, or what its lanes and
/// generation can. A virtual machine may tell those of a virtual bridge, so that there the best of what it tells
/// counts.
std::optional<double> link_rate(const Signals& signals, const Policy& policy);

/// Bytes/s of so many lanes of that generation; nothing for one that is not known.
std::optional<double> raw_link_rate(double lanes, double generation);

/// Share of the wall time that copies themselves take in the stream that computes: at least that, since no link is
/// faster. Nothing where a signal is missing.
std::optional<double> copying_in_line(const Context& context, const Policy& policy);

/// What pinned memory and calls that return at once can win back of `share`, which `part` of the copies cost: the copy
/// itself stays. All of it where the link is not known.
double beyond_copying(const Context& context, const Policy& policy, double share, double part);
/// The same in words, for a finding's evidence.
std::string copying_in_words(const Context& context, const Policy& policy);

}  // namespace unidle::diagnose::detail
