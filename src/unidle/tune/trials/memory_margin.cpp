#include "unidle/tune/trials/memory_margin.h"

namespace unidle::tune {

void refuse_full_memory(const diagnose::Diagnosis& diagnosis, const knobs::Settings& changes, TrialResult& result) {
  if (!result.ok || !changes.contains("batch.size")) {
    return;
  }
  for (const diagnose::Finding& finding : diagnosis.findings) {
    if (finding.id == "memory-nearly-full" || finding.id == "allocator-retries" || finding.id == "out-of-memory") {
      result.ok = false;
      result.problem = finding.id + (finding.evidence.empty() ? "" : ": " + finding.evidence.front());
      return;
    }
  }
}

}  // namespace unidle::tune
