// Records of runs whose `unidle run` was killed.
#pragma once

#include <cstdint>
#include <filesystem>

#include "unidle/base/handle.h"

namespace unidle::observe {

/// The lock by which a recorder shows that it lives, on the folder of the probe files; nothing when somebody has it, or
/// locks cannot be had there. Held by the descriptor, which exec closes.
UniqueFd lock_folder(const std::filesystem::path& probe_folder);

/// Puts what the processes of a run had told, and its killed recorder had not written, into the record; also of
/// processes that run on: the next call takes what they have told since. Does nothing to a record that is whole or
/// being recorded, nor where the folder cannot be written. `record`: its folder, or the record.db in it. Returns the
/// steps that were added. Never throws: what cannot be recovered is left as it is.
std::uint64_t recover(const std::filesystem::path& record);

}  // namespace unidle::observe
