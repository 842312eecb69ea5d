#include "unidle/traits/workload.h"

namespace unidle::traits::workloads {

const Workload& protein() {
  static const Workload kWorkload{
      .name = "protein",
      .summary = "peptide diffusion with cross-attention to structure features",
      .costly_samples = true,
      .feature_cache = true,
  };
  return kWorkload;
}

}  // namespace unidle::traits::workloads
