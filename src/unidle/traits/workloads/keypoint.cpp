#include "unidle/traits/workload.h"

namespace unidle::traits::workloads {

const Workload& keypoint() {
  static const Workload kWorkload{
      .name = "keypoint",
      .summary = "heat maps of two points in pictures of four channels",
      .convolutions = true,
  };
  return kWorkload;
}

}  // namespace unidle::traits::workloads
