// Changes worth trying, from configuration and hardware alone.
#pragma once

#include <string>
#include <vector>

#include "unidle/knobs/settings.h"
#include "unidle/traits/workload.h"
#include "unidle/tune/advice/hardware.h"

namespace unidle::tune {

/// A change that may help. Knobs that only work together (batch size and accumulation) are one proposal.
struct Proposal {
  knobs::Settings changes;
  std::string reason;  // one sentence
  double promise = 0;  // 0..1, the largest share of wall time it may save; determines the order of the search
  bool safe = false;   // may be applied without measurement
};

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
