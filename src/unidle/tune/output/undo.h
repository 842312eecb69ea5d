// Reverts what `optimize --in-place` did.
#pragma once

#include <filesystem>

#include "unidle/base/disk.h"

namespace unidle::tune {

struct Undone {
  std::filesystem::path config;
  std::filesystem::path backup;  // the file it was restored from, now gone
  std::filesystem::path kept;    // the file that keeps the replaced configuration
};

/// Restores the configuration's bytes from its newest backup (NAME.bak.EXT, NAME.bak2.EXT, ...). The replaced content
/// is kept as NAME.undone.EXT, so that later edits are never lost. Throws kInput when there is no backup.
Undone undo(const std::filesystem::path& config, Disk& disk = system_disk());

/// The first of NAME.WORD.EXT, NAME.WORD2.EXT, ... that does not exist.
std::filesystem::path free_name(const std::filesystem::path& config, const std::string& word);

/// NAME.WORD.EXT in the configuration's folder.
std::filesystem::path beside(const std::filesystem::path& config, const std::string& word);

}  // namespace unidle::tune
