#include "unidle/base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "unidle/base/disk.h"
#include "unidle/base/error.h"
#include "unidle/base/testing/thrown.h"

namespace unidle {
namespace {

namespace fs = std::filesystem;
using testing::code_of;

std::ptrdiff_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(Files, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  const std::string bytes("a\0b\r\n", 5);
  write_file_atomic(folder.path() / "f", bytes);
  EXPECT_EQ(read_file(folder.path() / "f"), bytes);
  write_file_atomic(folder.path() / "f", "shorter");
  EXPECT_EQ(read_file(folder.path() / "f"), "shorter");
  EXPECT_EQ(entries(folder.path()), 1) << "temporary files are left";
}

TEST(Files, ResultHasTheUsualPermissions) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(022);
  write_file_atomic(folder.path() / "f", "x");
  ::umask(before);
  EXPECT_EQ(fs::status(folder.path() / "f").permissions(), static_cast<fs::perms>(0644));
}

TEST(Files, OnlyFilesAreReplaced) {
  const TemporaryFolder folder;
  const fs::path fifo = folder.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const UniqueFd reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK));
  write_file_atomic(fifo, "through");
  std::array<char, 20> got{};
  EXPECT_EQ(::read(reader.get(), got.data(), got.size()), 7);
  EXPECT_TRUE(fs::is_fifo(fifo));

  fs::create_symlink(fifo, folder.path() / "to-fifo");
  write_file_atomic(folder.path() / "to-fifo", "through");
  EXPECT_EQ(::read(reader.get(), got.data(), got.size()), 7);

  fs::create_symlink("made", folder.path() / "to-file");
  write_file_atomic(folder.path() / "to-file", "first");
  write_file_atomic(folder.path() / "to-file", "second");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "to-file"));
  EXPECT_EQ(read_file(folder.path() / "made"), "second");

  const UniqueFd stream(::open((folder.path() / "stream").c_str(), O_WRONLY | O_CREAT, 0600));
  ASSERT_EQ(::write(stream.get(), "one ", 4), 4);
  write_file_atomic("/proc/self/fd/" + std::to_string(stream.get()), "two");
  EXPECT_EQ(read_file(folder.path() / "stream"), "one two");

  write_file_atomic("/dev/null", "nowhere");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(code_of([] { write_file_atomic("/dev/full", "x"); }), ErrorCode::kIo);
  fs::create_symlink("loop", folder.path() / "loop");
  EXPECT_EQ(code_of([&] { write_file_atomic(folder.path() / "loop" / "f", "x"); }), ErrorCode::kIo);
}

/// The message with which reading `path` fails; empty if it succeeds.
std::string refused(const fs::path& path) {
  try {
    read_file(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_EQ(why_no_file(path), error.message());
    EXPECT_EQ(try_read_file(path), std::nullopt);
    return error.message();
  }
  return {};
}

TEST(Files, WhatIsNoFileIsToldOfAndNeverWaitedFor) {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refused(pipe), "is a pipe") << "and nobody writes into it";
  fs::create_symlink("pipe", folder.path() / "link.yaml");
  EXPECT_EQ(refused(folder.path() / "link.yaml"), "is a pipe");
  const UniqueFd held(::open(pipe.c_str(), O_RDWR));
  EXPECT_EQ(refused(pipe), "is a pipe") << "and somebody does, without a word";
  EXPECT_EQ(refused("/dev/zero"), "is a device");
  EXPECT_EQ(refused(folder.path()), "is a folder");
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  (folder.path() / "socket").string().copy(name.sun_path, sizeof name.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(refused(folder.path() / "socket"), "is a socket");
  EXPECT_FALSE(read_file("/proc/self/status").empty()) << "files of the kernel are files";
}

TEST(Files, MissingFileIsAnInputErrorOrNothing) {
  EXPECT_EQ(code_of([] { read_file("/nonexistent/file"); }), ErrorCode::kInput);
  EXPECT_EQ(try_read_file("/nonexistent/file"), std::nullopt);
}

TEST(Files, UnwritableFolderIsAnIoErrorThatNamesTheFile) {
  try {
    write_file_atomic("/proc/nothing/here", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_EQ(error.subject(), "/proc/nothing/here");
  }
}

TEST(Files, AFullDiskLeavesTheOldFileAndNoRest) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "f";
  write_file_atomic(path, "old");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const ErrorCode code = code_of([&] { write_file_atomic(path, std::string(100'000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(folder.path()), 1);
}

/// A person presses Ctrl-C while a file is written.
class InterruptedDisk final : public Disk {
 public:
  using Disk::write;
  int write(int fd, std::span<iovec> pieces) override {
    ::raise(SIGINT);
    return Disk::write(fd, pieces);
  }
};

TEST(Files, AnInterruptLeavesNoRest) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "f";
  write_file_atomic(path, "old");
  InterruptedDisk disk;
  EXPECT_EXIT(write_file_atomic(path, "new", disk), ::testing::KilledBySignal(SIGINT), "");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(Files, TemporaryFolderGoesWithItsContent) {
  fs::path path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    write_file_atomic(path / "f", "x");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(Files, WhatItsOwnerMayNotReadIsRemovedAsWell) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "a/b");
  write_file_atomic(folder.path() / "a/b/f", "x");
  ASSERT_EQ(::chmod((folder.path() / "a/b").c_str(), 0), 0);
  remove_tree(folder.path() / "a");
  EXPECT_FALSE(fs::exists(folder.path() / "a"));
}

TEST(Files, FoldersOfKilledProgramsAreSweptAndOthersStay) {
  const TemporaryFolder place;
  ::setenv("TMPDIR", place.path().c_str(), 1);
  {
    const TemporaryFolder living("sweep");
    fs::create_directories(place.path() / "sweep-killed/a");
    fs::create_directories(place.path() / "sweep-young");
    fs::create_directories(place.path() / "swept-other");
    for (const fs::path& old : {living.path(), place.path() / "sweep-killed", place.path() / "swept-other"}) {
      fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
    }
    TemporaryFolder::sweep("sweep");
    EXPECT_TRUE(fs::exists(living.path()));
  }
  ::unsetenv("TMPDIR");
  EXPECT_FALSE(fs::exists(place.path() / "sweep-killed"));
  EXPECT_TRUE(fs::exists(place.path() / "sweep-young"));
  EXPECT_TRUE(fs::exists(place.path() / "swept-other"));
}

TEST(Files, HostRootAndHomeFollowTheEnvironment) {
  ::setenv("UNIDLE_HOST_ROOT", "/elsewhere", 1);
  EXPECT_EQ(host_root(), "/elsewhere");
  ::unsetenv("UNIDLE_HOST_ROOT");
  EXPECT_EQ(host_root(), "/");
  ::setenv("UNIDLE_HOME", "/a/b", 1);
  EXPECT_EQ(home_folder(), "/a/b");
  ::unsetenv("UNIDLE_HOME");
  EXPECT_EQ(home_folder(), ".unidle");
}

}  // namespace
}  // namespace unidle
