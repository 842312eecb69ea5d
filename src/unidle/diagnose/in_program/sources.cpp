#include "unidle/diagnose/in_program/sources.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/knobs/changed_lines.h"

namespace unidle::diagnose {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kLargest_bytes = 1 << 20;  // a larger file is data

std::optional<std::string> read_source(const fs::path& path) {
  static constexpr std::array<std::string_view, 5> kEndings = {".py", ".yaml", ".yml", ".json", ".toml"};
  std::error_code failure;
  const bool known = std::find(kEndings.begin(), kEndings.end(), path.extension().string()) != kEndings.end();
  if (!known || !fs::is_regular_file(path, failure) || fs::file_size(path, failure) > kLargest_bytes || failure) {
    return std::nullopt;
  }
  return try_read_file(path);
}

}  // namespace

std::string Sources::name_of(const fs::path& file) const {
  const std::string relative = file.lexically_normal().lexically_relative(folder_).string();
  return relative.empty() || relative.starts_with("..") ? file.string() : relative;
}

const std::optional<std::string>& Sources::text(const std::string& file) {
  const auto [entry, added] = texts_.try_emplace(file);
  if (added) {
    try {
      entry->second = folder_.empty() ? std::nullopt : read_source(folder_ / file);
    } catch (const std::exception&) {
      entry->second.reset();  // odd names: the change is shown without its lines
    }
  }
  return entry->second;
}

bool Sources::is_of(const std::string& file, std::int64_t wall_ns) const {
  struct stat facts {};
  return ::stat((folder_ / file).c_str(), &facts) == 0 && facts.st_mtime <= wall_ns / kNsPerSecond;
}

void put_lines(const std::string& file, std::string_view before, std::string_view after, knobs::InProgram& words) {
  knobs::ChangedLines changed = knobs::changed_lines(before, after);
  words.where = fmt::format("{}:{}", file, changed.line);
  words.before = std::move(changed.before);
  words.after = std::move(changed.after);
}

}  // namespace unidle::diagnose
