#include "unidle/base/file_attributes.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <functional>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle {
namespace {

namespace fs = std::filesystem;

class FilesLike : public ::testing::Test {
 protected:
  fs::path file(const std::string& name, const std::string& bytes, mode_t mode) {
    fs::path path = folder_.path() / name;
    write_file_atomic(path, bytes);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static struct stat status(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status;
  }
  static mode_t mode(const fs::path& path) { return status(path).st_mode & 07777; }
  static std::string attribute(const fs::path& path, const char* name) {
    std::string value(1000, '\0');
    const ssize_t size = ::getxattr(path.c_str(), name, value.data(), value.size());
    value.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return value;
  }
  /// Sets an attribute; false if the test's file system has no extended attributes.
  static bool set_attribute(const fs::path& path, const char* name, const std::string& value) {
    return ::setxattr(path.c_str(), name, value.data(), value.size(), 0) == 0;
  }
  std::string refused(const fs::path& path) {
    const std::string before = read_file(path);
    try {
      replace_file(path, "new");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_EQ(read_file(path), before);
      return error.message();
    }
    return "replaced";
  }
  std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator());
  }

  TemporaryFolder folder_;
};

TEST_F(FilesLike, ACopyIsAsPrivateAsItsOriginal) {
  const fs::path secret = file("secret.yaml", "token: x", 0600);
  write_file_like(folder_.path() / "copy.yaml", "token: x", secret);
  EXPECT_EQ(mode(folder_.path() / "copy.yaml"), 0600U);
  const fs::path script = file("config.py", "x = 1", 0755);
  write_file_like(folder_.path() / "copy.py", "x = 1", script);
  EXPECT_EQ(mode(folder_.path() / "copy.py"), 0755U);
  write_file_like(folder_.path() / "orphan", "x", folder_.path() / "nothing");
  EXPECT_EQ(mode(folder_.path() / "orphan"), 0600U);
  EXPECT_EQ(entries(), 5);
}

TEST_F(FilesLike, ACopyOfAReadOnlyFileIsReadOnly) {
  const fs::path original = file("a.yaml", "a", 0444);
  write_file_like(folder_.path() / "b.yaml", "b", original);
  EXPECT_EQ(mode(folder_.path() / "b.yaml"), 0444U);
  EXPECT_EQ(read_file(folder_.path() / "b.yaml"), "b");
}

TEST_F(FilesLike, OwnerAndGroupAreKept) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root gives files away";
  }
  const fs::path original = file("a.yaml", "a", 0640);
  ASSERT_EQ(::chown(original.c_str(), 1234, 4321), 0);
  replace_file(original, "b");
  EXPECT_EQ(status(original).st_uid, 1234U);
  EXPECT_EQ(status(original).st_gid, 4321U);
  EXPECT_EQ(mode(original), 0640U);
}

TEST_F(FilesLike, ExtendedAttributesAndAccessListsAreKept) {
  const fs::path original = file("a.yaml", "a", 0640);
  if (!set_attribute(original, "user.origin", "lab")) {
    GTEST_SKIP() << "this file system has no extended attributes";
  }
  // Version 2; user::rw-, user:1234:r--, group::---, mask::r--, other::---
  const std::string list(
      "\2\0\0\0\1\0\6\0\377\377\377\377\2\0\4\0\322\4\0\0\4\0\0\0\377\377\377\377\20\0\4\0\377\377\377\377"
      "\40\0\0\0\377\377\377\377",
      44);
  const bool has_lists = set_attribute(original, "system.posix_acl_access", list);
  replace_file(original, "b");
  EXPECT_EQ(attribute(original, "user.origin"), "lab");
  if (has_lists) {
    EXPECT_EQ(attribute(original, "system.posix_acl_access"), list);
  }
}

TEST_F(FilesLike, ALinkStaysALink) {
  const fs::path real = file("real.yaml", "a", 0600);
  fs::create_symlink("real.yaml", folder_.path() / "link.yaml");
  replace_file(folder_.path() / "link.yaml", "b");
  EXPECT_TRUE(fs::is_symlink(folder_.path() / "link.yaml"));
  EXPECT_EQ(read_file(real), "b");
  EXPECT_EQ(mode(real), 0600U);
  EXPECT_EQ(entries(), 2);
}

TEST_F(FilesLike, OtherNamesAndReadOnlyFilesAreToldOf) {
  const fs::path shared = file("a.yaml", "a", 0644);
  fs::create_hard_link(shared, folder_.path() / "b.yaml");
  EXPECT_THAT(refused(shared), ::testing::HasSubstr("has 2 names"));
  EXPECT_EQ(refused(file("fixed.yaml", "a", 0444)), "is read-only") << "also for root";
  EXPECT_EQ(entries(), 3);
}

TEST_F(FilesLike, WhatIsNoFileIsNotReplaced) {
  const fs::path pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& path : {pipe, fs::path("/dev/null"), folder_.path(), folder_.path() / "nothing"}) {
    EXPECT_THROW(replace_file(path, "b"), Error) << path;
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(FileAttributes, AGroupThatCannotBeGivenGetsNoMoreThanEverybody) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root to make a file of a foreign group";
  }
  const TemporaryFolder folder;
  const fs::path original = folder.path() / "a";
  write_file_atomic(original, "a");
  ASSERT_EQ(::chown(original.c_str(), 0, 4321), 0);
  ASSERT_EQ(::chmod(original.c_str(), 0664), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  const FileAttributes attributes(original);
  ASSERT_EQ(::seteuid(1234), 0);  // a user who may not give files to that group
  const fs::path copy = folder.path() / "b";
  const UniqueFd fd(::open(copy.c_str(), O_CREAT | O_WRONLY, 0600));
  const bool given = attributes.give_to(fd.get());
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(given);
  struct stat made {};
  ASSERT_EQ(::stat(copy.c_str(), &made), 0);
  EXPECT_EQ(made.st_uid, 1234U);
  EXPECT_EQ(made.st_mode & 0777U, 0644U);
}

}  // namespace
}  // namespace unidle
