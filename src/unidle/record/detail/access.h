// Who may read a record: its user alone, unless UNIDLE_SHARED_RECORDS asks for what the umask gives.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <system_error>

namespace unidle::record {

/// Of a new file of a record.
mode_t file_mode();

/// Makes the folder of a record, its parent must be there. False when it was there, which keeps its mode, or cannot be
/// made (`failure`).
bool make_record_folder(const std::filesystem::path& folder, std::error_code& failure);

}  // namespace unidle::record
