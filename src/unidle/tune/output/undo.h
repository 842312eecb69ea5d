// Taking back what `optimize --in-place` did.
#pragma once

#include <filesystem>

#include "unidle/base/disk.h"

namespace unidle::tune {

struct Undone {
  std::filesystem::path config;
  std::filesystem::path backup;  // what it was restored from; gone now
  std::filesystem::path kept;    // what the configuration was until now
};

/// Gives the configuration the bytes of its newest backup (NAME.bak.EXT, NAME.bak2.EXT, ...). What it was until now
/// stays as NAME.undone.EXT, so that later edits are never lost. Throws kInput when there is no backup.
Undone undo(const std::filesystem::path& config, Disk& disk = system_disk());

/// NAME.WORD.EXT, or NAME.WORD2.EXT and so on: the first that does not exist.
std::filesystem::path free_name(const std::filesystem::path& config, const std::string& word);

/// NAME.WORD.EXT beside the configuration.
std::filesystem::path beside(const std::filesystem::path& config, const std::string& word);

}  // namespace unidle::tune
