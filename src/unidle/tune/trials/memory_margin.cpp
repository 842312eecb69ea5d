#include "unidle/tune/trials/memory_margin.h"

#include "unidle/diagnose/rule.h"

namespace unidle::tune {

void refuse_full_memory(const diagnose::Diagnosis& diagnosis, const knobs::Settings& changes, TrialResult& result) {
  if (!result.ok || !changes.contains("batch.size")) {
    return;
  }
  for (const diagnose::Finding& finding : diagnosis.findings) {
    const diagnose::Rule* rule = diagnose::find_rule(finding.id);
    if (rule != nullptr && rule->about_memory) {
      result.ok = false;
      result.problem = finding.id + (finding.evidence.empty() ? "" : ": " + finding.evidence.front());
      return;
    }
  }
}

}  // namespace unidle::tune
