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
  std::string depends = {};  // what must hold for it to help, or to be right; may be empty
};

/// The value that this machine asks for where `knob` has the value `present`; nothing where that is as good, the
/// machine has no say in it, or the knob is not one of knobs_of_hardware().
std::optional<Advised> advised_for(const Hardware& hardware, std::string_view knob, const knobs::Value& present);

/// Knobs whose values follow from the machine alone.
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
