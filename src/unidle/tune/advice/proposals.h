// What is worth trying, known from the configuration and the hardware alone.
#pragma once

#include <string>
#include <vector>

#include "unidle/knobs/settings.h"
#include "unidle/traits/workload.h"
#include "unidle/tune/advice/hardware.h"

namespace unidle::tune {

/// A change that may help. Knobs that only make sense together (batch size and accumulation) are one proposal.
struct Proposal {
  knobs::Settings changes;
  std::string reason;  // one sentence
  double promise = 0;  // 0..1, how much wall time it may save at most; orders the search
  bool safe = false;   // can be predicted without measuring
};

struct ProposalOptions {
  /// Only knobs that the configuration already has: for a foreign program, which may not read others.
  bool only_present = false;
};

/// Strongest promise first. Values equal to the present ones are left out; the effective batch stays what it is.
/// `workload` is that of the configuration, or nullptr for another program.
std::vector<Proposal> propose(const knobs::Settings& settings, const traits::Workload* workload,
                              const Hardware& hardware, const ProposalOptions& options);

/// Nobody trains with more, of batch size or accumulation, and the product of two such numbers still is one.
constexpr long long kLargestBatch = 1 << 20;

/// Micro-batch sizes that divide the effective batch exactly and are larger than the present one, smallest first; none
/// beyond kLargestBatch.
std::vector<long long> larger_micro_batches(long long size, long long accumulation);

}  // namespace unidle::tune
