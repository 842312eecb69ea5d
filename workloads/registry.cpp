#include "workloads/registry.h"

#include "unidle/base/error.h"

namespace unidle::workloads {

const train::WorkloadKind& find_workload(const train::Config& config, const train::WorkloadKind* loaded) {
  std::string names = loaded != nullptr ? loaded->traits.name : "";
  if (loaded != nullptr && names == config.text("workload")) {
    return *loaded;
  }
  for (const train::WorkloadKind* kind : all_workloads()) {
    if (kind->traits.name == config.text("workload")) {
      return *kind;
    }
    names += (names.empty() ? "" : ", ") + kind->traits.name;
  }
  const std::string& location = config.location("workload");
  throw Error(ErrorCode::kInput, (location.empty() ? config.name() : location) + ": workload",
              "expected one of: " + names + "; found '" + config.text("workload") + "'");
}

void refuse_known_name(const train::WorkloadKind* loaded, const std::string& library) {
  for (const train::WorkloadKind* kind : all_workloads()) {
    if (loaded != nullptr && kind->traits.name == loaded->traits.name) {
      throw Error(ErrorCode::kInput, library, "brings a workload " + kind->traits.name + ", and there is one already",
                  "give it another name");
    }
  }
}

}  // namespace unidle::workloads
