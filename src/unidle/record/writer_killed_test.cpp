#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "unidle/base/files.h"
#include "unidle/record/record.h"

namespace unidle::record {
namespace {

namespace fs = std::filesystem;

/// A record exists whole or not at all, wherever its creation is cut off.
TEST(WriterThatIsKilled, LeavesARecordOrNone) {
  std::mt19937 draw(1);
  for (int round = 0; round < 100; ++round) {
    const TemporaryFolder folder;
    const fs::path record = folder.path() / "record";
    const pid_t child = ::fork();
    if (child == 0) {
      Writer writer(record);
      writer.flush();
      ::pause();
    }
    ::usleep(std::uniform_int_distribution<unsigned>(0, 6000)(draw));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (fs::exists(record / "record.db")) {
      EXPECT_TRUE(Reader(record).steps().empty());
    } else {
      EXPECT_NO_THROW(Writer{record}) << "what was left stands in the way";
    }
  }
}

}  // namespace
}  // namespace unidle::record
