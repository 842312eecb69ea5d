#include "unidle/traits/workload.h"

#include <algorithm>

#include "unidle/base/error.h"

namespace unidle::traits {

const Workload* find_workload(std::string_view name) {
  const auto& all = all_workloads();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Workload* each) { return each->name == name; });
  return found == all.end() ? nullptr : *found;
}

const Workload& the_workload(std::string_view name) {
  const Workload* found = find_workload(name);
  if (found == nullptr) {
    throw Error(ErrorCode::kInternal, std::string(name), "has no file in src/unidle/traits/workloads");
  }
  return *found;
}

std::string workload_names() {
  std::string names;
  for (const Workload* workload : all_workloads()) {
    names += (names.empty() ? "" : ", ") + workload->name;
  }
  return names;
}

}  // namespace unidle::traits
