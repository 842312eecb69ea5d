// What a machine needs from any training program: the only place where values follow from hardware.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unidle/knobs/value.h"
#include "unidle/tune/advice/hardware.h"

namespace unidle::tune {

struct Advised {
  knobs::Value value;
  std::string reason;
  std::string depends = {};  // a condition for the value to help or to be correct; may be empty
};

/// The value that this machine needs when `knob` has the value `present`. Nothing when `present` is as good, when the
/// machine does not determine it, or when the knob is not one of knobs_of_hardware().
std::optional<Advised> advised_for(const Hardware& hardware, std::string_view knob, const knobs::Value& present);

/// Knobs whose values depend only on the machine.
const std::vector<std::string_view>& knobs_of_hardware();

/// More loader workers per device have not been seen to help, and each costs memory.
constexpr int kMostWorkers = 16;
/// Loader workers per process, with one process per GPU. With a GPU: all of the process's CPUs but one. Without: half
/// of the CPUs.
int best_workers(const Hardware& hardware);
/// "this job may use 16 CPUs for 4 GPUs"
std::string cpus_in_words(const Hardware& hardware);
/// True when the GPU has enough memory to propose larger micro-batches without a trial.
bool has_room_for_larger_batches(const Hardware& hardware);

}  // namespace unidle::tune
