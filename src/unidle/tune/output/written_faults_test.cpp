// Configurations and backups on a disk where every call fails once.
#include <gtest/gtest.h>

#include <map>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/testing/failing_disk.h"
#include "unidle/tune/output/undo.h"
#include "unidle/tune/output/written.h"

namespace unidle::tune {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;
using unidle::testing::FailingDisk;

constexpr const char* kBefore = "num_workers: 0\n";
constexpr const char* kAfter = "num_workers: 4\n";

/// Runs `change` on `old`, whose configuration is c.yaml, failing each disk call in turn. Afterwards the files must
/// equal `old`, or `changed` when it succeeded.
void change_at_each_failure(const Files& old, const Files& changed,
                            const std::function<void(const fs::path& config, Disk& disk)>& change) {
  int refusals = 0;
  unidle::testing::at_each_failure([&](FailingDisk& disk) {
    const TemporaryFolder folder;
    for (const auto& [name, text] : old) {
      write_file_atomic(folder.path() / name, text);
    }
    bool failed = false;
    try {
      change(folder.path() / "c.yaml", disk);
    } catch (const Error& error) {
      failed = true;
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      EXPECT_TRUE(error.subject().starts_with(folder.path().string() + "/c.")) << error.subject();
      EXPECT_NE(error.message().find("No space left on device"), std::string::npos) << error.what();
    }
    EXPECT_EQ(failed, disk.failed());
    refusals += failed ? 1 : 0;
    Files there;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      there[entry.path().filename()] = read_file(entry.path());
    }
    EXPECT_EQ(there, failed ? old : changed);
  });
  EXPECT_GE(refusals, 8);
}

void write_to(const fs::path& config, bool in_place, Disk& disk) {
  OptimizeResult result;
  result.config = config;
  result.before = kBefore;
  result.after = kAfter;
  write_result(result, std::nullopt, in_place, disk);
}

TEST(WrittenFaults, InPlaceItIsChangedWithABackupOrNotAtAll) {
  change_at_each_failure({{"c.yaml", kBefore}}, {{"c.yaml", kAfter}, {"c.bak.yaml", kBefore}},
                         [](const fs::path& config, Disk& disk) { write_to(config, true, disk); });
}

TEST(WrittenFaults, BesideItTheNewOneIsWholeOrNotThere) {
  change_at_each_failure({{"c.yaml", kBefore}}, {{"c.yaml", kBefore}, {"c.optimized.yaml", kAfter}},
                         [](const fs::path& config, Disk& disk) { write_to(config, false, disk); });
}

TEST(WrittenFaults, TakingItBackIsDoneOrNotBegun) {
  change_at_each_failure({{"c.yaml", kAfter}, {"c.bak.yaml", kBefore}},
                         {{"c.yaml", kBefore}, {"c.undone.yaml", kAfter}},
                         [](const fs::path& config, Disk& disk) { undo(config, disk); });
}

}  // namespace
}  // namespace unidle::tune
