// Builds a row file from text files with several threads.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "unidle/data/tables/row_file.h"

namespace unidle::data::tables {

/// Returns the row file of a table. Reuses the existing one if it was built from the current files for the same columns
/// and split, otherwise builds it. Concurrent processes wait for the first one. Throws like TableSource. `built`
/// reports whether it was built.
std::unique_ptr<RowFile> open_or_build(const TableOptions& options, Disk& disk, bool& built);

}  // namespace unidle::data::tables
