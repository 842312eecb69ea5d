#include "unidle/tune/output/written.h"

#include <gtest/gtest.h>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/tune/output/undo.h"

namespace unidle::tune {
namespace {

std::filesystem::perms permissions(const std::filesystem::path& path) {
  return std::filesystem::status(path).permissions();
}

OptimizeResult changed(const std::filesystem::path& config) {
  OptimizeResult result;
  result.config = config;
  result.before = read_file(config);
  result.after = "num_workers: 4\n";
  return result;
}

TEST(Written, WhatIsMadeOfAPrivateFileIsPrivate) {
  using std::filesystem::perms;
  const TemporaryFolder folder;
  const std::filesystem::path config = folder.path() / "c.yaml";
  const perms secret = perms::owner_read | perms::owner_write;
  write_file_atomic(config, "num_workers: 0\n");
  std::filesystem::permissions(config, secret);
  EXPECT_EQ(permissions(write_result(changed(config), std::nullopt, false).output), secret);
  EXPECT_EQ(permissions(write_result(changed(config), folder.path() / "new.yaml", false).output), secret);
  const Written in_place = write_result(changed(config), std::nullopt, true);
  EXPECT_EQ(permissions(config), secret);
  EXPECT_EQ(permissions(*in_place.backup), secret);
  EXPECT_EQ(permissions(undo(config).kept), secret);
  EXPECT_EQ(permissions(config), secret);
  EXPECT_EQ(read_file(config), "num_workers: 0\n");
}

TEST(Written, WhatCannotBeChangedIsLeftAsItIsWithNoBackup) {
  const TemporaryFolder folder;
  const std::filesystem::path config = folder.path() / "c.yaml";
  write_file_atomic(config, "num_workers: 0\n");
  std::filesystem::create_hard_link(config, folder.path() / "other.yaml");
  EXPECT_THROW(write_result(changed(config), std::nullopt, true), Error);
  EXPECT_EQ(std::filesystem::hard_link_count(config), 2U);
  std::filesystem::remove(folder.path() / "other.yaml");
  std::filesystem::permissions(config, std::filesystem::perms::owner_read);
  EXPECT_THROW(write_result(changed(config), std::nullopt, true), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_EQ(read_file(config), "num_workers: 0\n");
}

}  // namespace
}  // namespace unidle::tune
