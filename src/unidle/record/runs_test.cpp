#include <gmock/gmock.h>
#include <stdlib.h>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
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

TEST_F(Runs, NamesDoNotCollide) {
  const fs::path first = new_run_folder("x");
  make_folders(first);
  for (int i = 0; i < 3; ++i) {
    const fs::path next = new_run_folder("x");
    EXPECT_FALSE(fs::exists(next));
    make_folders(next);
  }
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

TEST_F(Runs, LinkFailureIsIgnored) {
  ::setenv("UNIDLE_HOME", "/proc/nothing", 1);
  EXPECT_NO_THROW(link_latest(folder_.path()));
}

}  // namespace
}  // namespace unidle::record
