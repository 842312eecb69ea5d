// Finds out on which of a machine's GPUs a run trains.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "unidle/account/readings.h"
#include "unidle/record/record.h"

namespace unidle::account {

/// One GPU of the record.
struct OwnGpu {
  std::string subject;               // name in series: "gpu3"
  nlohmann::json facts;              // null when the record has none
  std::optional<std::string> slice;  // "gpu3/mig1", when the run uses a known slice
  nlohmann::json slice_facts = {};

  /// True in MIG mode: memory and foreign processes of the whole device say nothing about the run's slice.
  bool sliced() const;
};

/// The training process's GPU: by the UUID or PCI address that the program reported, else the one on which the run's
/// processes use most memory, else the only one. Nothing when it is ambiguous, so that another run's device is never
/// judged.
std::optional<OwnGpu> own_gpu(const RunData& run, const Readings& readings, std::optional<std::int64_t> process);

}  // namespace unidle::account
