// What is worth trying, known from the configuration and the hardware alone.
#pragma once

#include <string>
#include <vector>

#include "unidle/knobs/settings.h"
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
/// `workload` is the name of a unidle workload, or empty.
std::vector<Proposal> propose(const knobs::Settings& settings, const std::string& workload, const Hardware& hardware,
                              const ProposalOptions& options);

/// Steps between two readings of the loss: often enough to watch, rare enough to cost nothing. The diagnosis says so
/// too.
constexpr int kMetricsInterval = 50;

/// Nobody trains with more, of batch size or accumulation, and the product of two such numbers still is one.
constexpr long long kLargestBatch = 1 << 20;

/// Micro-batch sizes that divide the effective batch exactly and are larger than the present one, smallest first; none
/// beyond kLargestBatch.
std::vector<long long> larger_micro_batches(long long size, long long accumulation);

}  // namespace unidle::tune
