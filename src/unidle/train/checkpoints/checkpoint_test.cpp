// A damaged checkpoint is rejected, or its values are unharmed, whichever byte is damaged.
#include "unidle/train/checkpoints/checkpoint.h"

#include <gmock/gmock.h>

#include <chrono>
#include <optional>
#include <random>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/train/checkpoints/checkpoint_folder.h"
#include "unidle/train/testing/line_workload.h"

namespace unidle::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Everything that a checkpoint consists of, after some steps.
struct SavedRun {
  explicit SavedRun(double ema_decay = 0.5) : averaged(workload.model(), ema_decay) {}
  LiveState live(std::string name = "line") {
    return {std::move(name), 1, workload.model(), *optimizer, precision, averaged, at::kCPU};
  }

  testing::LineWorkload workload;
  std::unique_ptr<Optimizer> optimizer = std::make_unique<AdamW>(workload.model().parameters(), AdamW::Settings{});
  Precision precision{"fp16", at::kCPU};
  AveragedWeights averaged;
};

std::string bytes_of(SavedRun& run, const Position& position) {
  Snapshot snapshot;
  take(snapshot, run.live(), position);
  const std::vector<char> bytes = to_bytes(snapshot);
  return {bytes.begin(), bytes.end()};
}

/// The snapshot that was read. Any exception other than an Error about the file fails the test.
std::optional<Snapshot> taken(const std::string& bytes) {
  try {
    Snapshot snapshot = from_bytes(bytes, "some.pt");
    EXPECT_EQ(snapshot.position.samples, 40);
    EXPECT_EQ(snapshot.position.steps, 5);
    return snapshot;
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kInput) << error.what();
    EXPECT_EQ(error.subject(), "some.pt");
    return std::nullopt;
  }
}

TEST(Checkpoint, IsRefusedWhereverItIsCutOff) {
  SavedRun run;
  const std::string whole = bytes_of(run, {40, 5});
  EXPECT_TRUE(taken(whole).has_value());
  for (std::size_t part = 0; part < 64; ++part) {
    EXPECT_FALSE(taken(whole.substr(0, whole.size() * part / 64)).has_value()) << part;
  }
}

/// A flipped bit may go unnoticed only in the archive's own padding and times.
TEST(Checkpoint, NeverBringsOtherValuesWhicheverBitFlips) {
  SavedRun run;
  const std::string whole = bytes_of(run, {40, 5});
  const Snapshot original = from_bytes(whole, "some.pt");
  std::mt19937_64 random(20260101);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    char& one = bytes[random() % bytes.size()];
    one = static_cast<char>(one ^ (1 << random() % 8));
    const std::optional<Snapshot> read = taken(bytes);
    if (!read) {
      ++refused;
      continue;
    }
    for (std::size_t p = 0; p < original.parameters.size(); ++p) {
      EXPECT_TRUE(at::equal(read->parameters[p].second, original.parameters[p].second));
    }
    EXPECT_TRUE(at::equal(read->random.host, original.random.host));
  }
  EXPECT_GT(refused, 100);
}

TEST(Checkpoint, IsRefusedWithAPositionBeforeTheBeginning) {
  SavedRun run;
  EXPECT_FALSE(taken(bytes_of(run, {-8, 5})).has_value());
}

TEST(Checkpoint, OfSeveralProcessesHasTheGeneratorsOfEach) {
  SavedRun run;
  Snapshot snapshot;
  take(snapshot, run.live(), {40, 5});
  const at::Tensor own = random_state(at::kCPU);
  at::manual_seed(77);
  const at::Tensor other = random_state(at::kCPU);
  snapshot.random = {at::stack({own, other}), at::arange(32, at::kByte).view({2, 16})};  // as of two GPUs
  const auto read_back = [&] {
    const std::vector<char> bytes = to_bytes(snapshot);
    return taken({bytes.begin(), bytes.end()});
  };
  const std::optional<Snapshot> read = read_back();
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->ranks(), 2);
  EXPECT_TRUE(at::equal(read->random.device, snapshot.random.device));
  at::manual_seed(1);
  restore(*read, run.live(), /*rank=*/1, /*ranks=*/2, "some.pt");
  EXPECT_TRUE(at::equal(random_state(at::kCPU), other));
  snapshot.random.device = snapshot.random.device[0].unsqueeze(0);
  EXPECT_FALSE(read_back().has_value()) << "a generator each";
}

std::string refusal(const Snapshot& snapshot, const LiveState& state, int ranks = 1) {
  try {
    restore(snapshot, state, 0, ranks, "some.pt");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    return error.what();
  }
  return "taken";
}

TEST(Checkpoint, OfAnotherRunIsRefusedWithTheReason) {
  SavedRun run;
  Snapshot snapshot;
  take(snapshot, run.live(), {40, 5});
  EXPECT_EQ(refusal(snapshot, run.live()), "taken");
  EXPECT_THAT(refusal(snapshot, run.live("superres")), HasSubstr("of the workload line"));
  EXPECT_THAT(refusal(snapshot, run.live(), 2), HasSubstr("by 1 process, not 2"));
  SavedRun plain(0);
  EXPECT_THAT(refusal(snapshot, plain.live()), HasSubstr("ema.decay"));
  SavedRun other;
  other.optimizer = std::make_unique<Sgd>(other.workload.model().parameters(), Sgd::Settings{});
  EXPECT_THAT(refusal(snapshot, other.live()), HasSubstr("optimizer.name adamw"));
  Snapshot larger = snapshot;
  larger.parameters[0].second = at::zeros({9, 3});
  EXPECT_THAT(refusal(larger, run.live()), HasSubstr("'weight1' does not fit"));
}

class Folder : public ::testing::Test {
 protected:
  void save(CheckpointFolder& folder, std::int64_t samples) {
    folder.save(run_.live(), {samples, samples / 4});
    folder.finish();
  }
  TemporaryFolder place_;
  SavedRun run_;
};

TEST_F(Folder, KeepsTheNewestFewAndPointsToTheLast) {
  CheckpointFolder folder(place_.path(), 2);
  for (const std::int64_t samples : {4, 8, 12}) {
    save(folder, samples);
  }
  const auto all = checkpoints_in(place_.path());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].filename(), "checkpoint-000000000012.pt");
  EXPECT_EQ(read_checkpoint(place_.path() / "checkpoint.pt").position.samples, 12);
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& path : checkpoints_in(folder)) {
    names.push_back(path.filename().string());
  }
  return names;
}

void make_older(const std::filesystem::path& folder) {
  for (const auto& path : checkpoints_in(folder)) {
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::hours(1));
  }
}

TEST_F(Folder, AnEarlierLongerRunDoesNotWin) {
  CheckpointFolder earlier(place_.path(), 2);
  save(earlier, 5760);
  save(earlier, 6400);
  make_older(place_.path());
  CheckpointFolder later(place_.path(), 2);
  save(later, 640);
  EXPECT_THAT(names_in(place_.path()), ElementsAre("checkpoint-000000000640.pt", "checkpoint-000000006400.pt"));
  save(later, 1280);
  EXPECT_THAT(names_in(place_.path()), ElementsAre("checkpoint-000000001280.pt", "checkpoint-000000000640.pt"));
  std::filesystem::path found;
  EXPECT_EQ(read_newest(place_.path(), found).position.samples, 1280);
}

TEST_F(Folder, WithoutTheLinkTheTimesOfTheFilesDecide) {
  CheckpointFolder folder(place_.path(), 3);
  save(folder, 6400);
  make_older(place_.path());
  save(folder, 640);
  std::filesystem::remove(place_.path() / "checkpoint.pt");
  EXPECT_THAT(names_in(place_.path()), ElementsAre("checkpoint-000000000640.pt", "checkpoint-000000006400.pt"));
}

TEST_F(Folder, WhatTheLinkNamesIsTheNewestWhateverTheClockSaid) {
  CheckpointFolder folder(place_.path(), 3);
  save(folder, 6400);
  save(folder, 640);
  make_older(place_.path());
  const auto later = std::filesystem::last_write_time(place_.path() / "checkpoint.pt") + std::chrono::hours(1);
  std::filesystem::last_write_time(place_.path() / "checkpoint-000000006400.pt", later);
  EXPECT_THAT(names_in(place_.path()), ElementsAre("checkpoint-000000000640.pt", "checkpoint-000000006400.pt"));
}

TEST_F(Folder, FilesThatAreNoCheckpointsOfOursStay) {
  std::filesystem::create_directories(place_.path() / "checkpoint-000000000003.pt");
  for (const char* name : {"checkpoint-1.pt", "checkpoint-best.pt", "checkpoint-000000000002.pt.old", "notes.pt"}) {
    write_file_atomic(place_.path() / name, "the user's");
  }
  std::filesystem::create_symlink("notes.pt", place_.path() / "checkpoint-000000000002.pt");
  CheckpointFolder folder(place_.path(), 1);
  save(folder, 4);
  save(folder, 8);
  EXPECT_FALSE(std::filesystem::exists(place_.path() / "checkpoint-000000000004.pt"));
  for (const char* name : {"checkpoint-000000000002.pt", "checkpoint-000000000003.pt", "checkpoint-1.pt",
                           "checkpoint-best.pt", "checkpoint-000000000002.pt.old", "notes.pt"}) {
    EXPECT_TRUE(std::filesystem::exists(place_.path() / name)) << name;
  }
}

TEST_F(Folder, WhatAKilledWriterLeftGoesWhenNobodyCanStillBeWritingIt) {
  const auto left = place_.path() / "checkpoint-000000000096.pt.part-4PKjQk";
  const auto written_now = place_.path() / "checkpoint-000000000128.pt.part-McQceV";
  const auto of_the_user = place_.path() / "checkpoint-000000000096.pt.backup";
  for (const auto& path : {left, written_now, of_the_user}) {
    write_file_atomic(path, "half a checkpoint");
  }
  for (const auto& path : {left, of_the_user}) {
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::hours(2));
  }
  CheckpointFolder folder(place_.path(), 1);
  save(folder, 4);
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(written_now));
  EXPECT_TRUE(std::filesystem::exists(of_the_user));
}

TEST_F(Folder, ADamagedNewestOneIsPassedOver) {
  CheckpointFolder folder(place_.path(), 3);
  save(folder, 4);
  save(folder, 8);
  const auto newest = checkpoints_in(place_.path())[0];
  const std::string whole = read_file(newest);
  write_file_atomic(newest, whole.substr(0, whole.size() / 2));
  std::filesystem::path found;
  EXPECT_EQ(read_newest(place_.path(), found).position.samples, 4);
  EXPECT_EQ(found.filename(), "checkpoint-000000000004.pt");
  write_file_atomic(found, "nothing");
  try {
    read_newest(place_.path(), found);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_EQ(error.subject(), place_.path().string());
  }
}

}  // namespace
}  // namespace unidle::train
