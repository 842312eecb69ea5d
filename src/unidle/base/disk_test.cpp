// Files on a disk that refuses one call after another: afterwards the file has the old content or the new one.
#include "unidle/base/disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <map>
#include <thread>
#include <vector>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/handle.h"
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

TEST(Disk, AWriteThatASignalCutsShortGoesOnWhereItStopped) {
  std::string wanted;
  for (int i = 0; wanted.size() < 1'000'000; ++i) {
    wanted += std::to_string(i) + ' ';
  }
  std::vector<iovec> pieces;  // more than one system call takes
  constexpr std::size_t kPiece = 700;
  for (std::size_t at = 0; at < wanted.size(); at += kPiece) {
    pieces.push_back({wanted.data() + at, std::min(kPiece, wanted.size() - at)});
  }
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  struct sigaction interrupt {};  // without SA_RESTART
  struct sigaction before {};
  interrupt.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &interrupt, &before), 0);
  int failure = -1;
  std::thread writer([&] {
    failure = system_disk().write(writing.get(), pieces);
    writing.reset();
  });
  const int room = ::fcntl(reading.get(), F_GETPIPE_SZ);
  for (int held = 0; held < room - 4096;) {  // then the writer waits for room, with only a part written
    ASSERT_EQ(::ioctl(reading.get(), FIONREAD, &held), 0);
    std::this_thread::yield();
  }
  ::pthread_kill(writer.native_handle(), SIGUSR1);
  std::string got;
  std::array<char, 1 << 16> buffer;
  for (ssize_t count = 1; count > 0; got.append(buffer.data(), static_cast<std::size_t>(count))) {
    count = std::max<ssize_t>(::read(reading.get(), buffer.data(), buffer.size()), 0);
  }
  writer.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(failure, 0);
  EXPECT_TRUE(got == wanted);
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
