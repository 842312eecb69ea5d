// The workload `protein`: peptides out of noise, by their structure features.
#pragma once

#include "unidle/train/workload.h"

namespace unidle::workloads::protein {

const train::WorkloadKind& protein();

}  // namespace unidle::workloads::protein
