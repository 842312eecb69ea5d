#include <gmock/gmock.h>
#include <stdlib.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/testing/fake_clock.h"
#include "unidle/record/record.h"

namespace unidle::record {
namespace {

namespace fs = std::filesystem;

class Runs : public ::testing::Test {
 protected:
  Runs() { ::setenv("UNIDLE_HOME", (folder_.path() / "home").c_str(), 1); }
  ~Runs() override { ::unsetenv("UNIDLE_HOME"); }

  TemporaryFolder folder_;
};

TEST_F(Runs, NamesSortByTimeAndAreSafe) {
  const fs::path folder = new_run_folder("../a b/c");
  EXPECT_EQ(folder.parent_path(), folder_.path() / "home/runs");
  EXPECT_THAT(folder.filename().string(), ::testing::MatchesRegex("[0-9]+-[0-9]+-run..-a-b-c"));
}

TEST_F(Runs, OfOneSecondAreNumbered) {
  unidle::testing::FakeClock clock;
  const std::string first = new_run_folder("x", clock).filename();
  EXPECT_EQ(first, "20231114-221321-x");
  EXPECT_EQ(new_run_folder("x", clock).filename(), first + "-2");
  clock.advance(kNsPerSecond);
  EXPECT_EQ(new_run_folder("x", clock).filename(), "20231114-221322-x");
}

TEST_F(Runs, AreNamedAfterTheScript) {
  EXPECT_EQ(run_name({"python3.12", "-u", "src/train.py", "--epochs", "3"}), "train");
  EXPECT_EQ(run_name({"/usr/bin/bash", "job.sh"}), "job");
  EXPECT_EQ(run_name({"torchrun", "--nproc-per-node", "2", "src/train.py", "--config", "b.py"}), "train");
  EXPECT_EQ(run_name({"python", "-m", "torch.distributed.run", "--nproc_per_node=2", "train.py"}), "train");
  EXPECT_EQ(run_name({"accelerate", "launch", "train.py"}), "train");
  EXPECT_EQ(run_name({"accelerate", "launch", "-m", "pkg.train"}), "accelerate");
  EXPECT_EQ(run_name({"python", "-m", "pkg.train", "--config", "b.py"}), "pkg.train");
  EXPECT_EQ(run_name({"python", "-m", "package"}), "package");
  EXPECT_EQ(run_name({"./train", "config.yaml"}), "train");
  EXPECT_EQ(run_name({"bash", "-c", "set -e\npython train.py"}), "bash") << "what -c runs is no script";
  EXPECT_EQ(run_name({"python"}), "python");
}

TEST_F(Runs, AFolderThatNothingCameIntoIsRemoved) {
  fs::path empty;
  fs::path used;
  {
    const RunFolder first("x");
    const RunFolder second("x");
    empty = first.path();
    used = second.path();
    EXPECT_TRUE(fs::is_directory(empty));
    write_file_atomic(used / "record.db", "rows");
  }
  EXPECT_FALSE(fs::exists(empty));
  EXPECT_TRUE(fs::exists(used / "record.db"));
}

TEST_F(Runs, NamesDoNotCollide) {
  std::mutex mutex;
  std::set<fs::path> folders;
  {
    std::vector<std::jthread> starters;
    for (int i = 0; i < 8; ++i) {
      starters.emplace_back([&] {
        for (int n = 0; n < 20; ++n) {
          const fs::path folder = new_run_folder("x");
          const std::lock_guard lock(mutex);
          folders.insert(folder);
        }
      });
    }
  }
  EXPECT_THAT(folders, ::testing::SizeIs(160));
  for (const fs::path& folder : folders) {
    EXPECT_TRUE(fs::is_directory(folder)) << folder;
  }
}

TEST_F(Runs, NameIsGivenWhereNoFolderCanBeMade) {
  ::setenv("UNIDLE_HOME", "/proc/nothing", 1);
  const fs::path folder = new_run_folder("x");
  EXPECT_EQ(folder.parent_path(), "/proc/nothing/runs");
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(Runs, LatestFollowsTheLink) {
  EXPECT_THROW(latest_run_folder(), Error);
  const fs::path first = new_run_folder("first");
  make_folders(first);
  link_latest(first);
  EXPECT_EQ(latest_run_folder(), first);
  EXPECT_TRUE(fs::read_symlink(folder_.path() / "home/runs/latest").is_relative());

  const fs::path elsewhere = folder_.path() / "elsewhere";
  make_folders(elsewhere);
  link_latest(elsewhere);
  EXPECT_EQ(latest_run_folder(), elsewhere);
  fs::remove_all(elsewhere);
  EXPECT_THROW(latest_run_folder(), Error);
}

TEST_F(Runs, AreFoundByName) {
  const fs::path runs = folder_.path() / "home/runs";
  EXPECT_THROW(find_run("train"), Error);
  for (const char* name : {"20260101-000000-train", "20260101-000001-train", "20260102-000000-eval",
                           "20260102-000000-train-2", "20260103-000000-eval"}) {
    make_folders(runs / name);
  }
  link_latest(runs / "20260102-000000-eval");
  EXPECT_EQ(find_run("latest"), runs / "20260102-000000-eval");
  EXPECT_EQ(find_run("-1"), runs / "20260103-000000-eval");
  EXPECT_EQ(find_run("-5"), runs / "20260101-000000-train");
  EXPECT_THROW(find_run("-6"), Error);
  EXPECT_EQ(find_run("20260101-000001"), runs / "20260101-000001-train") << "a part of one name";
  EXPECT_EQ(find_run("20260102-000000-train-2"), runs / "20260102-000000-train-2");
  EXPECT_THROW(find_run("eval"), Error) << "two runs have it in their names";
  EXPECT_EQ(find_run("somewhere/else"), "somewhere/else") << "a path that a command may refuse in its own words";
  EXPECT_EQ(find_run(runs.string()), runs);
}

TEST_F(Runs, TheLastTwoAreOfOneProgram) {
  const fs::path runs = folder_.path() / "home/runs";
  EXPECT_THROW(last_two_runs(), Error);
  for (const char* name : {"20260101-000000-train", "20260102-000000-eval", "20260102-000000-train"}) {
    make_folders(runs / name);
  }
  EXPECT_EQ(last_two_runs(), std::pair(runs / "20260101-000000-train", runs / "20260102-000000-train"));
  for (int n = 2; n <= 10; ++n) {  // of one second
    make_folders(runs / ("20260102-000000-train-" + std::to_string(n)));
  }
  EXPECT_EQ(last_two_runs(), std::pair(runs / "20260102-000000-train-9", runs / "20260102-000000-train-10"));
  make_folders(runs / "20260103-000000-fold-1");
  make_folders(runs / "20260103-000001-fold-2");
  EXPECT_THROW(last_two_runs(), Error) << "two programs, fold-1.py and fold-2.py";
}

TEST_F(Runs, SearchesAreNoRuns) {
  const fs::path runs = folder_.path() / "home/runs";
  for (const char* name : {"20260101-000000-train", "20260102-000000-train"}) {
    make_folders(runs / name);
  }
  for (const char* name : {"20260102-000001-train", "20260102-000002-fix", "20260102-000003-fix"}) {
    Writer(runs / name).set_meta("kind", "optimize");
  }
  EXPECT_EQ(last_two_runs(), std::pair(runs / "20260101-000000-train", runs / "20260102-000000-train"));
  EXPECT_EQ(find_run("-1"), runs / "20260102-000000-train");
  EXPECT_EQ(find_run("-2"), runs / "20260101-000000-train");
  EXPECT_THROW(find_run("-3"), Error);
}

TEST_F(Runs, EarlierOnesAreOfTheSameProgram) {
  const fs::path runs = folder_.path() / "home/runs";
  for (const char* name :
       {"20260101-000000-train", "20260102-000001-eval", "20260103-000000-train", "20260104-000000-train", "short"}) {
    make_folders(runs / name);
  }
  EXPECT_THAT(earlier_runs(runs / "20260104-000000-train"),
              ::testing::ElementsAre(runs / "20260103-000000-train", runs / "20260101-000000-train"));
  EXPECT_THAT(earlier_runs(runs / "20260101-000000-train"), ::testing::IsEmpty());
  EXPECT_THAT(earlier_runs(runs / "short"), ::testing::IsEmpty()) << "a name without a time";
  EXPECT_THAT(earlier_runs(folder_.path() / "20260104-000000-train"), ::testing::IsEmpty()) << "elsewhere";
}

TEST_F(Runs, LinkFailureIsIgnored) {
  ::setenv("UNIDLE_HOME", "/proc/nothing", 1);
  EXPECT_NO_THROW(link_latest(folder_.path()));
}

}  // namespace
}  // namespace unidle::record
