#include "workloads/registry.h"

#include "unidle/base/error.h"
#include "workloads/superres/superres.h"

namespace unidle::workloads {

const std::vector<const train::WorkloadKind*>& all_workloads() {
  static const std::vector<const train::WorkloadKind*> kAll = {&superres::superres()};
  return kAll;
}

const train::WorkloadKind& find_workload(const train::Config& config) {
  std::string names;
  for (const train::WorkloadKind* kind : all_workloads()) {
    if (kind->name == config.text("workload")) {
      return *kind;
    }
    names += (names.empty() ? "" : ", ") + kind->name;
  }
  const std::string& location = config.location("workload");
  throw Error(ErrorCode::kInput, (location.empty() ? config.name() : location) + ": workload",
              "expected one of: " + names + "; found '" + config.text("workload") + "'");
}

}  // namespace unidle::workloads
