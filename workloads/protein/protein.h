// The workload `protein`: generates peptides from noise, guided by their structure features.
#pragma once

#include "unidle/train/workload.h"

namespace unidle::workloads::protein {

const train::WorkloadKind& protein();

}  // namespace unidle::workloads::protein
