// Records whose writer was killed or whose disk refused to write.
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/sqlite.h"
#include "unidle/base/testing/thrown.h"
#include "unidle/record/record.h"
#include "unidle/record/testing/sample_record.h"

namespace unidle::record {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::write_sample;
using unidle::testing::code_of;

/// Runs `body` in a forked child that ends by SIGKILL.
void in_killed_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(Record, CutOffByKillIsReadableUpToTheLastCommit) {
  const TemporaryFolder folder;
  in_killed_child([&] {
    Writer writer(folder.path());
    for (int i = 0; i < 1000; ++i) {
      writer.add(Step{});
    }
    writer.flush();
    for (int i = 0; i < 1000; ++i) {
      writer.add(Step{});
    }
    ::raise(SIGKILL);
  });
  const Reader reader(folder.path());
  EXPECT_GE(reader.steps().size(), 1000U);
  EXPECT_FALSE(reader.meta(meta::kOutcome).has_value());
}

/// Lets other users read records while it lives.
struct Shared {
  Shared() { ::setenv("UNIDLE_SHARED_RECORDS", "1", 1); }
  ~Shared() { ::unsetenv("UNIDLE_SHARED_RECORDS"); }
};

TEST(Record, CutOffIsReadableFromAReadOnlyFolder) {
  const Shared shared;
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to become somebody else";
  }
  for (const bool with_shared_memory : {true, false}) {
    const TemporaryFolder folder;
    ::chmod(folder.path().c_str(), 0755);
    in_killed_child([&] {
      Writer writer(folder.path() / "r");
      writer.add(Step{});
      writer.flush();
      ::raise(SIGKILL);
    });
    ASSERT_TRUE(fs::exists(folder.path() / "r/record.db-wal"));
    if (!with_shared_memory) {
      fs::remove(folder.path() / "r/record.db-shm");
    }
    ASSERT_EQ(::seteuid(65534), 0);
    std::size_t seen = 0;
    EXPECT_NO_THROW(seen = Reader(folder.path() / "r").steps().size());
    ASSERT_EQ(::seteuid(0), 0);
    EXPECT_EQ(seen, 1U);
  }
}

TEST(Record, WalModeWithoutLogIsReadableFromAReadOnlyFolder) {
  const Shared shared;
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to become somebody else";
  }
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0755);
  write_sample(folder.path() / "r", 3);
  sqlite::Database(folder.path() / "r/record.db", (folder.path() / "r/record.db").string(), SQLITE_OPEN_READWRITE,
                   ErrorCode::kIo)
      .execute("PRAGMA journal_mode=WAL");
  ASSERT_EQ(::seteuid(65534), 0);
  std::size_t seen = 0;
  EXPECT_NO_THROW(seen = Reader(folder.path() / "r").steps().size());
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(seen, 3U);
}

TEST(Record, UnwritableFolderIsIoError) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  std::string subject;
  EXPECT_EQ(code_of([&] { Writer(folder.path() / "file/record"); }, &subject), ErrorCode::kIo);
  EXPECT_THAT(subject, HasSubstr("file/record"));
}

/// Writes in a forked child with a file size limit until a write fails. The exit code reports the result.
int write_until_full(const fs::path& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{512 * 1024, 512 * 1024};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int result = 1;
    Writer writer(folder);
    try {
      for (int i = 0; i < 1'000'000; ++i) {
        writer.add(Note{i, 0, {{"type", "x"}, {"text", std::string(1000, 'x')}}});
        if (i % 50 == 0) {
          writer.flush();
        }
      }
    } catch (const Error& error) {
      const bool named = error.subject().ends_with("record.db");
      result = error.code() == ErrorCode::kIo && named ? 0 : 2;
    }
    try {
      writer.add(Step{});  // does nothing now
      writer.add_point(writer.series({"a", "b", "c"}), {1, 1});
      writer.flush();
    } catch (...) {
      result = 3;
    }
    ::_exit(result);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Record, FullDiskIsOneIoErrorAndWhatWasCommittedStays) {
  const TemporaryFolder folder;
  EXPECT_EQ(write_until_full(folder.path()), 0);
  EXPECT_GT(Reader(folder.path()).notes().size(), 50U);
}

}  // namespace
}  // namespace unidle::record
