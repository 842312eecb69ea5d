#include "unidle/traits/workload.h"

namespace unidle::traits::workloads {

const Workload& timeseries() {
  static const Workload kWorkload{
      .name = "timeseries",
      .summary = "a daily measurement of tomorrow, a recurrent network with attention",
      .small_data = true,
  };
  return kWorkload;
}

}  // namespace unidle::traits::workloads
