#include "unidle/traits/workload.h"

namespace unidle::traits::workloads {

const Workload& superres() {
  static const Workload kWorkload{
      .name = "superres",
      .summary = "x4 super-resolution of photographs",
      .convolutions = true,
      .costly_samples = true,
  };
  return kWorkload;
}

}  // namespace unidle::traits::workloads
