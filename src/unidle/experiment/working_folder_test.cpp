#include "unidle/experiment/working_folder.h"

#include <gmock/gmock.h>

#include "unidle/base/files.h"

namespace unidle::experiment {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(WorkingFolder, IsCopiedWhereThatIsSafe) {
  const TemporaryFolder scratch;
  const fs::path from = scratch.path() / "from";
  make_folders(from / "data");
  make_folders(from / ".unidle/runs");
  write_file_atomic(from / "train.py", "print()");
  write_file_atomic(from / "data/a.txt", "a");
  fs::create_symlink("data/a.txt", from / "link");
  EXPECT_FALSE(why_not_copied(from, {"python", "train.py"}));
  copy_folder(from, scratch.path() / "to");
  EXPECT_EQ(read_file(scratch.path() / "to/data/a.txt"), "a");
  EXPECT_TRUE(fs::is_symlink(scratch.path() / "to/link"));
  EXPECT_FALSE(fs::exists(scratch.path() / "to/.unidle"));

  EXPECT_THAT(why_not_copied(from, {"python", "../../train.py"}).value_or(""), HasSubstr("../../train.py"));
  fs::create_symlink("../elsewhere", from / "out");
  EXPECT_THAT(why_not_copied(from, {"python", "train.py"}).value_or(""), HasSubstr("out"));
  fs::remove(from / "out");
  fs::resize_file(from / "train.py", 300 << 20);
  EXPECT_THAT(why_not_copied(from, {"python", "train.py"}).value_or(""), HasSubstr("too large"));
}

TEST(WorkingFolder, BlanksWithoutEndAreReadOnce) {
  const TemporaryFolder scratch;
  const fs::path from = scratch.path() / "project";
  make_folders(from);
  make_folders(scratch.path() / "data");
  const std::string blanks(500'000, ' ');
  write_file_atomic(from / "train.py", "'..'" + blanks + ",\n'data'\n");
  EXPECT_THAT(named_siblings(from, {"python"}), ElementsAre("data"));
  write_file_atomic(from / "train.py", "'..'" + blanks + "'data' '..', data '..' '../' .../data 'a'..'/data'");
  EXPECT_THAT(named_siblings(from, {"python"}), ::testing::IsEmpty());
}

TEST(WorkingFolder, WhatLiesBesideItIsThereWhenItIsNamed) {
  const TemporaryFolder scratch;
  const fs::path from = scratch.path() / "project";
  make_folders(from);
  for (const char* name : {"data", "joined", "word", "unnamed"}) {
    make_folders(scratch.path() / name);
  }
  write_file_atomic(
      from / "train.py",
      "MNIST('../data'); open(os.path.join('..', \"joined\", 'x')); '../gone'; '../../word'; a.../unnamed");
  const std::vector<std::string> command = {"python", "train.py", "--extra=../word/x"};
  EXPECT_THAT(named_siblings(from, command), ElementsAre("data", "joined", "word"));
  EXPECT_FALSE(why_not_copied(from, command));
  const fs::path copy = copy_for_trial(from, command, scratch.path() / "trial");
  EXPECT_EQ(copy, scratch.path() / "trial/project");
  EXPECT_TRUE(fs::exists(copy / "train.py"));
  EXPECT_TRUE(fs::equivalent(copy / "../data", scratch.path() / "data"));
  EXPECT_FALSE(fs::exists(copy / "../unnamed"));
}

}  // namespace
}  // namespace unidle::experiment
