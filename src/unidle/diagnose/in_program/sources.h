// The files of the program that a record is about, as they are now.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "unidle/knobs/change.h"
#include "unidle/knobs/python_edit.h"

namespace unidle::diagnose {

/// Reads each file once. They may have changed since the run: who asks for a line has to check what it finds there.
/// Never throws.
class Sources {
 public:
  /// `folder`: where the program was started; relative names are below it. Empty: unknown, and nothing is read.
  explicit Sources(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  /// The name by which messages and patches call a file: below the folder without it.
  std::string name_of(const std::filesystem::path& file) const;
  /// The text of a Python or configuration file; nothing when it is another kind of file, large or unreadable.
  const std::optional<std::string>& text(const std::string& file);
  /// False when the file was written after that time.
  bool is_of(const std::string& file, std::int64_t wall_ns) const;

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::optional<std::string>> texts_;
};

/// Sets the place of `words`, and its lines, to what changes from `before` to `after` in `file`.
void put_lines(const std::string& file, std::string_view before, std::string_view after, knobs::InProgram& words);

}  // namespace unidle::diagnose
