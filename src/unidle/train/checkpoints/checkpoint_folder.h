// The checkpoints of a run: the newest few, written while training continues.
#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <vector>

#include "unidle/train/checkpoints/checkpoint.h"

namespace unidle::train {

/// Writes FOLDER/checkpoint-SAMPLES.pt and keeps the `keep` newest, of whatever run, and a link checkpoint.pt to the
/// newest. Each appears atomically: after a crash or on a full disk the earlier ones are intact. Used from one thread;
/// writing has its own thread.
class CheckpointFolder {
 public:
  CheckpointFolder(std::filesystem::path folder, std::int64_t keep);
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  /// Copies the state and returns; the copy is written in the background. Waits for the previous write and throws kIo,
  /// naming the file, when that failed. `of_all`: generator states of all ranks, when there are several.
  void save(const LiveState& state, const Position& position, const std::optional<RandomStates>& of_all = {});
  /// Waits for the last write; throws as save() does.
  void finish();

 private:
  void write() const;

  std::filesystem::path folder_;
  std::int64_t keep_;
  Snapshot snapshot_;
  std::future<void> writing_;
};

/// The checkpoints of a folder, newest first: the target of checkpoint.pt, then by file time, then by samples. An
/// earlier run in the same folder may have trained longer.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);

/// Reads the checkpoint at `path` or, when `path` is a folder, the newest intact one; damaged ones are skipped with a
/// warning. Throws kInput when there is none, kCorrupt when all are damaged. `found` is set to the file that was read.
Snapshot read_newest(const std::filesystem::path& path, std::filesystem::path& found);

}  // namespace unidle::train
