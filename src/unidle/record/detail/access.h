// Who may read a record: only its user, unless UNIDLE_SHARED_RECORDS leaves that to the umask.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <system_error>

namespace unidle::record {

/// The mode for a new file of a record.
mode_t file_mode();

/// Makes the folder of a record; its parent must exist. Returns false when the folder exists (its mode is kept) or
/// cannot be made (`failure` is set).
bool make_record_folder(const std::filesystem::path& folder, std::error_code& failure);

}  // namespace unidle::record
