#include "unidle/tune/output/undo.h"

#include <gtest/gtest.h>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::tune {
namespace {

TEST(Undo, ALinkThatLeadsNowhereIsNoFreeName) {
  const TemporaryFolder folder;
  const std::filesystem::path config = folder.path() / "c.yaml";
  std::filesystem::create_symlink("elsewhere", beside(config, "bak"));
  EXPECT_EQ(free_name(config, "bak"), beside(config, "bak2"));
}

TEST(Undo, RestoresTheNewestBackup) {
  const TemporaryFolder folder;
  const std::filesystem::path config = folder.path() / "c.yaml";
  write_file_atomic(config, "third");
  write_file_atomic(beside(config, "bak"), "first");
  write_file_atomic(beside(config, "bak2"), "second");
  EXPECT_EQ(undo(config).kept, beside(config, "undone"));
  EXPECT_EQ(read_file(config), "second");
  EXPECT_EQ(read_file(beside(config, "undone")), "third");
  undo(config);
  EXPECT_EQ(read_file(config), "first");
  EXPECT_EQ(read_file(beside(config, "undone2")), "second");
  EXPECT_THROW(undo(config), Error);
}

}  // namespace
}  // namespace unidle::tune
