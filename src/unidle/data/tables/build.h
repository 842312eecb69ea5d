// From text files to a row file, by several threads.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "unidle/data/tables/row_file.h"

namespace unidle::data::tables {

/// The row file of a table: the one that is there, when it was built from files as they are now and for the same
/// columns and split; otherwise it is built. Processes that want the same one wait for the first. Throws as TableSource
/// says. `built` tells which it was.
std::unique_ptr<RowFile> open_or_build(const TableOptions& options, Disk& disk, bool& built);

}  // namespace unidle::data::tables
