#include "unidle/train/checkpoints/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <compare>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/log.h"
#include "unidle/base/numbers.h"
#include "unidle/base/unfinished.h"

namespace unidle::train {

namespace {

constexpr const char* kNewest = "checkpoint.pt";
constexpr std::string_view kPrefix = "checkpoint-";

std::string name_of(std::int64_t samples) { return fmt::format("{}{:012}.pt", kPrefix, samples); }

/// The number of samples in a checkpoint's file name; -1 for any name that we would not write.
std::int64_t samples_in_name(const std::filesystem::path& path) {
  const std::string name = path.stem().string();
  if (!name.starts_with(kPrefix)) {
    return -1;
  }
  const auto samples = parse_number<std::int64_t>(name.substr(kPrefix.size())).value_or(-1);
  return samples >= 0 && path.filename() == name_of(samples) ? samples : -1;
}

/// Removes files left by a process that was killed while writing: no write takes this long.
void remove_unfinished(const std::filesystem::path& folder) {
  const auto oldest = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const std::size_t mark = name.rfind(kUnfinished);
    if (mark != std::string::npos && samples_in_name(name.substr(0, mark)) >= 0 && entry.is_regular_file(ignored) &&
        entry.last_write_time(ignored) < oldest) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
}

/// Orders checkpoints by when they were written: the larger, the later.
struct Written {
  bool linked;  // checkpoint.pt links to it, so it was written last, whatever the clock says
  std::filesystem::file_time_type time;
  std::int64_t samples;
  auto operator<=>(const Written&) const = default;
};

/// For a file named by the user, damage is an input error.
Snapshot read_one(const std::filesystem::path& path) {
  try {
    return read_checkpoint(path);
  } catch (const Error& error) {
    throw Error(ErrorCode::kInput, error.subject(), error.message(), error.hint());
  }
}

/// FAT, some network mounts and object stores have no links. checkpoints_in() works without.
bool knows_no_links(const std::error_code& failure) {
  return failure == std::errc::operation_not_permitted || failure == std::errc::operation_not_supported ||
         failure == std::errc::function_not_supported;
}

/// Replaces the link atomically.
void point_to(const std::filesystem::path& link, const std::filesystem::path& name) {
  const std::filesystem::path next = link.string() + ".next";
  std::error_code failure;
  std::filesystem::remove(next, failure);
  std::filesystem::create_symlink(name, next, failure);
  if (knows_no_links(failure)) {
    static std::once_flag told;
    std::call_once(told, [&] { spdlog::warn("{} cannot be made: its file system has no links", link.string()); });
    return;
  }
  if (!failure) {
    std::filesystem::rename(next, link, failure);
  }
  if (failure) {
    throw system_error(ErrorCode::kIo, link.string(), "cannot be made", failure.value());
  }
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::filesystem::path folder, std::int64_t keep)
    : folder_(std::move(folder)), keep_(keep) {}

CheckpointFolder::~CheckpointFolder() {
  if (writing_.valid()) {
    writing_.wait();  // errors are reported by finish()
  }
}

void CheckpointFolder::save(const LiveState& state, const Position& position,
                            const std::optional<RandomStates>& of_all) {
  finish();
  take(snapshot_, state, position);
  if (of_all) {
    snapshot_.random = *of_all;
  }
  writing_ = std::async(std::launch::async, [this] { write(); });
}

void CheckpointFolder::finish() {
  if (writing_.valid()) {
    writing_.get();
  }
}

void CheckpointFolder::write() const {
  const std::vector<char> bytes = to_bytes(snapshot_);
  make_folders(folder_);
  const std::string name = name_of(snapshot_.position.samples);
  write_file_atomic(folder_ / name, std::string_view(bytes.data(), bytes.size()));
  point_to(folder_ / kNewest, name);
  const std::vector<std::filesystem::path> all = checkpoints_in(folder_);
  for (std::size_t i = static_cast<std::size_t>(keep_); i < all.size(); ++i) {
    std::error_code ignored;
    if (!std::filesystem::is_symlink(all[i], ignored)) {  // a link was made by somebody else
      std::filesystem::remove(all[i], ignored);
    }
  }
  remove_unfinished(folder_);
}

std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::filesystem::path newest = std::filesystem::read_symlink(folder / kNewest, ignored);
  std::vector<std::pair<Written, std::filesystem::path>> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::int64_t samples = samples_in_name(entry.path());
    if (samples >= 0 && entry.is_regular_file(ignored)) {
      const Written written{entry.path().filename() == newest, entry.last_write_time(ignored), samples};
      found.emplace_back(written, entry.path());
    }
  }
  std::ranges::sort(found, std::ranges::greater());
  std::vector<std::filesystem::path> paths;
  for (auto& one : found) {
    paths.push_back(std::move(one.second));
  }
  return paths;
}

Snapshot read_newest(const std::filesystem::path& path, std::filesystem::path& found) {
  found = path;
  if (!std::filesystem::is_directory(path)) {
    return read_one(path);
  }
  for (const std::filesystem::path& candidate : checkpoints_in(path)) {
    try {
      found = candidate;
      return read_checkpoint(candidate);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorrupt) {
        throw;
      }
      spdlog::warn("{}: damaged, looking at the checkpoint before it", candidate.string());
    }
  }
  throw Error(ErrorCode::kInput, path.string(), "has no complete checkpoint",
              "checkpoint.interval and checkpoint.folder say how often and where a run makes them");
}

}  // namespace unidle::train
