#include "unidle/traits/workload.h"

namespace unidle::traits::workloads {

const Workload& recsys() {
  static const Workload kWorkload{
      .name = "recsys",
      .summary = "play time and clicks out of tables",
      .small_data = true,
  };
  return kWorkload;
}

}  // namespace unidle::traits::workloads
