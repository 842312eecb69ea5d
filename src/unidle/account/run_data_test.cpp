#include "unidle/account/run_data.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "unidle/base/files.h"
#include "unidle/record/record.h"

namespace unidle::account {
namespace {

TEST(RunData, IsNamedAfterItsFolder) {
  const TemporaryFolder folder;
  record::Writer(folder.path() / "20261130-120000-train").flush();
  std::filesystem::create_directory_symlink("20261130-120000-train", folder.path() / "latest");
  std::filesystem::create_directory_symlink("20261130-120000-train", folder.path() / "before");
  EXPECT_EQ(load_run(folder.path() / "20261130-120000-train" / "").name, "20261130-120000-train");
  EXPECT_EQ(load_run(folder.path() / "latest").name, "20261130-120000-train") << "two records would have one name";
  EXPECT_EQ(load_run(folder.path() / "before").name, "before") << "a link of the user's";
}

}  // namespace
}  // namespace unidle::account
