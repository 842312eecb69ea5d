// Which of a machine's GPUs a run trains on.
#pragma once

#include <optional>
#include <string>

#include "unidle/diagnose/detail/readings.h"
#include "unidle/record/record.h"

namespace unidle::diagnose::detail {

/// The subject ("gpu3") of the training process's GPU in the series of the driver: by the UUID or the PCI address that
/// the program said, else the one that the run's processes hold most memory on, else the only one. Nothing where
/// several may be meant: another run's device would be judged.
std::optional<std::string> own_gpu(const record::Reader& reader, const Readings& readings,
                                   std::optional<std::int64_t> process);

/// What the record says of that GPU; null when it says nothing.
nlohmann::json facts_of_gpu(const record::Reader& reader, const std::string& subject);

}  // namespace unidle::diagnose::detail
