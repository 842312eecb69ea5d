#include "unidle/tune/output/undo.h"

#include <fmt/format.h>

#include <optional>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/signals_blocked.h"

namespace unidle::tune {

namespace fs = std::filesystem;

namespace {

fs::path numbered(const fs::path& config, const std::string& word, int number) {
  return beside(config, number == 1 ? word : fmt::format("{}{}", word, number));
}

}  // namespace

fs::path beside(const fs::path& config, const std::string& word) {
  return config.parent_path() / (config.stem().string() + "." + word + config.extension().string());
}

fs::path free_name(const fs::path& config, const std::string& word) {
  int number = 1;
  // A dangling link counts as an existing file.
  while (fs::exists(fs::symlink_status(numbered(config, word, number)))) {
    ++number;
  }
  return numbered(config, word, number);
}

Undone undo(const fs::path& config, Disk& disk) {
  std::optional<fs::path> backup;
  for (int number = 1; fs::exists(status_of(numbered(config, "bak", number))); ++number) {
    backup = numbered(config, "bak", number);
  }
  if (!backup) {
    const bool beside_it = fs::exists(status_of(beside(config, "optimized")));
    throw Error(ErrorCode::kInput, config.string(), "has no backup to go back to",
                beside_it ? "it was never changed: " + beside(config, "optimized").string() + " is a copy"
                          : "backups are made by --in-place");
  }
  Undone undone{config, *backup, free_name(config, "undone")};
  const std::string before = read_file(*backup);
  const SignalsBlocked none(kEndingSignals);
  write_file_like(undone.kept, read_file(config), config, disk);
  try {
    replace_file(config, before, disk);
  } catch (...) {
    disk.unlink(undone.kept);
    throw;
  }
  fs::remove(*backup);
  return undone;
}

}  // namespace unidle::tune
