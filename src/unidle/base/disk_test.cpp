// Files on a disk that refuses one call after another: afterwards the file has the old content or the new one.
#include "unidle/base/disk.h"

#include <gtest/gtest.h>

#include <map>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/testing/failing_disk.h"

namespace unidle {
namespace {

namespace fs = std::filesystem;
using testing::at_each_failure;
using testing::FailingDisk;

const std::string kNew(10'000, 'n');

/// Overwrites a file by `write`, if `old` exists, and checks the result at each failure.
void write_at_each_failure(const std::optional<std::string>& old,
                           const std::function<void(const fs::path& path, Disk& disk)>& write) {
  int refusals = 0;
  at_each_failure([&](FailingDisk& disk) {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "file";
    if (old) {
      write_file_atomic(path, *old);
    }
    bool failed = false;
    try {
      write(path, disk);
    } catch (const Error& error) {
      failed = true;
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      EXPECT_EQ(error.subject(), path.string());
      EXPECT_NE(error.message().find("No space left on device"), std::string::npos) << error.what();
    }
    EXPECT_EQ(failed, disk.failed());
    refusals += failed ? 1 : 0;
    std::map<std::string, std::string> there;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      there[entry.path().filename()] = read_file(entry.path());
    }
    std::map<std::string, std::string> expected;
    if (!failed || old) {
      expected["file"] = failed ? *old : kNew;
    }
    EXPECT_EQ(there, expected);
  });
  EXPECT_GE(refusals, 8) << "to make, fit out, fill, sync and rename it, each once and for good";
}

TEST(Disk, AnAtomicWriteIsAllOrNothing) {
  const auto write = [](const fs::path& path, Disk& disk) { write_file_atomic(path, kNew, disk); };
  write_at_each_failure(std::nullopt, write);
  write_at_each_failure("old", write);
}

TEST(Disk, ACopyIsAllOrNothing) {
  write_at_each_failure("old", [](const fs::path& path, Disk& disk) { write_file_like(path, kNew, path, disk); });
}

TEST(Disk, AFileThatIsReplacedKeepsItsBytesUntilItHasNewOnes) {
  write_at_each_failure("old", [](const fs::path& path, Disk& disk) { replace_file(path, kNew, disk); });
}

TEST(Disk, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryFolder folder;
  FailingDisk disk;
  disk.fail_from = 0;
  disk.error = EDQUOT;
  try {
    make_folders(folder.path() / "a/b", disk);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.subject(), (folder.path() / "a/b").string());
    EXPECT_NE(error.message().find("quota"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace unidle
