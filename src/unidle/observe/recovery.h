// Recovers records of runs whose `unidle run` was killed.
#pragma once

#include <cstdint>
#include <filesystem>

#include "unidle/base/handle.h"

namespace unidle::observe {

/// Locks the folder of the probe files to show that a recorder lives. Returns nothing when another process has the lock
/// or locks are not available there. The descriptor holds the lock; exec closes it.
UniqueFd lock_folder(const std::filesystem::path& probe_folder);

/// Adds to the record what the processes of a run had written and its killed recorder had not stored. If they still
/// run, the next call adds what they have written since. Waits for the recorder of a run that has just ended. Does
/// nothing when the record is complete or being recorded, or the folder cannot be written. `record`: its folder, or the
/// record.db in it. Returns the number of steps added. Never throws: what cannot be recovered stays unchanged.
std::uint64_t recover(const std::filesystem::path& record);

}  // namespace unidle::observe
