// Changes worth trying, from configuration and hardware alone.
#pragma once

#include <string>
#include <vector>

#include "unidle/knobs/settings.h"
#include "unidle/traits/workload.h"
#include "unidle/tune/advice/hardware.h"

namespace unidle::tune {

/// Changes that are tried together, because they only work together (batch size and accumulation), and what they
/// promise: from advice or a diagnosis to the end of a search. Another thing than a knobs::Change, which is one knob.
struct Proposal {
  knobs::Settings changes;
  std::string reason;  // one sentence
  double promise = 0;  // determines the order of the search: the largest share of wall time it may save, 0..1
  bool safe = false;   // may be applied together with others, without a measurement of its own
  bool tried = false;  // by the search
};

/// Added to the promise of what a diagnosis measured: it precedes what is only known from hardware.
constexpr double kMeasuredFirst = 1.0;

struct ProposalOptions {
  /// Only knobs that the configuration already has, because another program may not read others.
  bool only_present = false;
};

/// Strongest promise first, without values that are already set; the effective batch stays the same. `workload`: the
/// configuration's, or nullptr for another program.
std::vector<Proposal> propose(const knobs::Settings& settings, const traits::Workload* workload,
                              const Hardware& hardware, const ProposalOptions& options);

/// Larger than any real batch size or accumulation; the product of two such numbers does not overflow.
constexpr long long kLargestBatch = 1 << 20;

/// Micro-batch sizes that are larger than the present one and divide the effective batch, ascending, up to
/// kLargestBatch.
std::vector<long long> larger_micro_batches(long long size, long long accumulation);

}  // namespace unidle::tune
