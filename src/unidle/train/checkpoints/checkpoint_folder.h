// The checkpoints of a run: the newest few, written beside training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <vector>

#include "unidle/train/checkpoints/checkpoint.h"

namespace unidle::train {

/// FOLDER/checkpoint-SAMPLES.pt, the `keep` written last, whichever run they are of, and the link checkpoint.pt to the
/// newest. Each appears in one move: after a crash or on a full disk those before are whole. One thread; writing has
/// one of its own.
class CheckpointFolder {
 public:
  CheckpointFolder(std::filesystem::path folder, std::int64_t keep);
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  /// Copies the state and returns; the copy is written meanwhile. Waits for the write before, and throws kIo, naming
  /// the file, when that failed. `of_all`: the generators of all ranks, where there are several.
  void save(const LiveState& state, const Position& position, const std::optional<RandomStates>& of_all = {});
  /// Waits for the last write and throws as save() does.
  void finish();

 private:
  void write() const;

  std::filesystem::path folder_;
  std::int64_t keep_;
  Snapshot snapshot_;
  std::future<void> writing_;
};

/// The checkpoints of a folder, the one written last first: what checkpoint.pt links to, then by the files' times,
/// then by samples. An earlier run in the same folder may have gone further.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);

/// The checkpoint at `path`, or the newest whole one where `path` is a folder: a damaged one is passed over with a
/// warning. Throws kInput when there is none, kCorrupt when none is whole. `found`: the file that it was.
Snapshot read_newest(const std::filesystem::path& path, std::filesystem::path& found);

}  // namespace unidle::train
