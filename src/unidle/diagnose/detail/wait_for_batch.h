// What the training thread does while it waits for its next batch.
#pragma once

#include <optional>

#include "unidle/diagnose/context.h"
#include "unidle/diagnose/detail/finding.h"

namespace unidle::diagnose::detail {

/// The part of the wait for a batch in which its samples are made and put together, 0..1, where the training thread
/// does that itself. Nothing if other threads do, or it was not measured.
std::optional<double> made_in_wait(const Context& context);

/// The share of the wall time spent waiting for samples: all of the steady wait for input, less what is known to be
/// other work. REQUIRES: context.steady_input.
double wait_for_samples(const Context& context);

/// The shortest step if workers made so much of the wait for a batch (seconds), and the rest of it stayed. REQUIRES:
/// context.input_s.
std::optional<double> step_with_workers(const Context& context, double made_s);

/// True when that part is small: samples that cost nothing, and workers that make them, would gain little.
bool waits_beside_samples(const Context& context, const Policy& policy);

/// True when the program makes an iterator of its loader for most batches, although a pass over the data has several.
bool iterates_for_each_batch(const Signals& signals, const Policy& policy);

/// The function of the program's sampler that takes most of the wait, with its share of that wait; nothing if none was
/// seen.
std::optional<HotFunction> hot_sampler(const Signals& signals);

}  // namespace unidle::diagnose::detail
