#include "unidle/observe/tail.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "unidle/base/files.h"

namespace unidle::observe {
namespace {

TEST(SharedTail, KeepsTheEndThatAnotherProcessAppends) {
  SharedTail tail(10);
  const pid_t child = ::fork();
  if (child == 0) {
    for (char c = 'a'; c <= 'z'; ++c) {
      tail.append(&c, 1);
    }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(tail.text(), "qrstuvwxyz");
  EXPECT_EQ(tail.total(), 26U);
}

TEST(SharedTail, PiecesOfAnySizeComeOutWhole) {
  SharedTail tail(1000);
  std::string all;
  for (std::size_t size : {1U, 999U, 3U, 1000U, 1999U, 2000U, 2001U, 5000U, 7U, 0U}) {
    std::string piece(size, 'x');
    for (char& c : piece) {
      c = static_cast<char>('a' + all.size() % 26);
      all += c;
    }
    tail.append(piece.data(), piece.size());
    EXPECT_EQ(tail.text(), all.substr(all.size() - std::min<std::size_t>(all.size(), 1000)));
    EXPECT_EQ(tail.total(), all.size());
  }
}

// Text read during writing is always a piece of the stream.
TEST(SharedTail, ReadingBesideWritingGivesNoMixture) {
  SharedTail tail(4096);
  const pid_t child = ::fork();
  if (child == 0) {
    for (std::uint64_t n = 0; n < 200'000; ++n) {
      tail.append(reinterpret_cast<const char*>(&n), sizeof n);
    }
    ::_exit(0);
  }
  while (::waitpid(child, nullptr, WNOHANG) == 0) {
    const std::string text = tail.text();
    const std::size_t count = text.size() / sizeof(std::uint64_t);
    const char* numbers = text.data() + text.size() % sizeof(std::uint64_t);
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t number = 0;
      std::memcpy(&number, numbers + i * sizeof number, sizeof number);
      ASSERT_TRUE(i == 0 || number == last + 1) << last << " " << number;
      last = number;
    }
  }
  EXPECT_EQ(tail.text().size(), 4096U);
}

class FileTailTest : public ::testing::Test {
 protected:
  UniqueFd open(int flags) {
    return UniqueFd(::open((folder_.path() / "f").c_str(), flags | O_CREAT | O_WRONLY, 0600));
  }
  static void put(const UniqueFd& fd, std::string_view text) {
    ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  TemporaryFolder folder_;
};

TEST_F(FileTailTest, OnlyWhatIsAppendedCounts) {
  std::ofstream(folder_.path() / "f") << "before";
  const UniqueFd fd = open(O_APPEND);
  const auto tail = FileTail::open(fd.get(), 4);
  ASSERT_TRUE(tail);
  EXPECT_EQ(tail->text(), "");
  EXPECT_EQ(tail->total(), 0U);
  put(fd, "abc");
  EXPECT_EQ(tail->text(), "abc");
  put(fd, "def");
  EXPECT_EQ(tail->text(), "cdef");
  EXPECT_EQ(tail->total(), 6U);
}

TEST_F(FileTailTest, WithinAFileThePositionTells) {
  std::ofstream(folder_.path() / "f") << "0123456789";
  const UniqueFd fd = open(0);
  const auto tail = FileTail::open(fd.get(), 100);
  EXPECT_EQ(tail->text(), "");
  put(fd, "abc");
  EXPECT_EQ(tail->text(), "abc");
}

TEST_F(FileTailTest, AFileThatIsCutMeanwhileStartsAnew) {
  std::ofstream(folder_.path() / "f") << "before";
  const UniqueFd fd = open(O_APPEND);
  const auto tail = FileTail::open(fd.get(), 100);
  put(fd, "abc");
  ASSERT_EQ(::ftruncate(fd.get(), 0), 0);
  put(fd, "new");
  EXPECT_EQ(tail->text(), "new");
  EXPECT_EQ(tail->total(), 3U);
}

}  // namespace
}  // namespace unidle::observe
