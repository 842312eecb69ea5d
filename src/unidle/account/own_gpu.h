// Which of a machine's GPUs a run trains on.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "unidle/account/readings.h"
#include "unidle/record/record.h"

namespace unidle::account {

/// One GPU of the record, by the names that series have for it.
struct OwnGpu {
  std::string subject;               // "gpu3"
  nlohmann::json facts;              // null when the record says nothing of it
  std::optional<std::string> slice;  // "gpu3/mig1", where the run has a known slice of it
  nlohmann::json slice_facts = {};

  /// In MIG mode a run has a slice, whichever: memory and strangers of the whole device say nothing about it.
  bool sliced() const;
};

/// The training process's GPU: by the UUID or the PCI address that the program said, else the one that the run's
/// processes hold most memory on, else the only one. Nothing where several may be meant: another run's device would be
/// judged.
std::optional<OwnGpu> own_gpu(const RunData& run, const Readings& readings, std::optional<std::int64_t> process);

}  // namespace unidle::account
