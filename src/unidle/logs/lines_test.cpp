#include "unidle/logs/lines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include <cstdio>

#include "unidle/base/error.h"
#include "unidle/base/files.h"

namespace unidle::logs {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> read(std::string_view bytes, std::size_t longest = std::size_t{64} << 10U) {
  Source source("memory", bytes);
  Lines lines(source, longest);
  std::vector<std::string> all;
  std::string_view line;
  while (lines.next(line)) {
    all.push_back(fmt::format("{}:{}{}", lines.number(), line, lines.ended() ? "" : "|"));
  }
  return all;
}

std::string gzipped(const std::string& bytes) {
  TemporaryFolder folder;
  const std::string path = folder.path() / "a.gz";
  gzFile file = ::gzopen(path.c_str(), "wb");
  ::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  ::gzclose(file);
  return read_file(path);
}

/// `text` in UTF-16 with a byte order mark; each of its bytes is a character.
std::string utf16(std::string_view text, bool big_endian) {
  std::string bytes = big_endian ? "\xfe\xff" : "\xff\xfe";
  for (const char sign : text) {
    bytes += big_endian ? std::string{'\0', sign} : std::string{sign, '\0'};
  }
  return bytes;
}

TEST(Lines, Utf16IsReadAsUtf8) {
  for (const bool big_endian : {false, true}) {
    EXPECT_THAT(read(utf16("a\r\nb\n", big_endian)), ElementsAre("1:a", "2:b"));
    EXPECT_THAT(read(utf16("", big_endian)), ElementsAre());
  }
  // U+1F600 is a pair of two units, which a block of the file may divide.
  const std::string pair("\x3d\xd8\x00\xde", 4);
  for (const std::size_t before : {131'068, 131'069, 131'070, 131'071, 131'072}) {
    const std::string text(before, 'x');
    const std::vector<std::string> lines = read(utf16(text, false) + pair + utf16("y\n", false).substr(2), 1U << 20U);
    EXPECT_THAT(lines, ElementsAre("1:" + text + "\xf0\x9f\x98\x80y"));
  }
}

TEST(Lines, Utf16ThatIsNotValidIsMarked) {
  const std::string end = utf16("b\n", false).substr(2);
  const std::string lone_low("\x00\xde", 2);
  const std::string lone_high("\x3d\xd8", 2);
  EXPECT_THAT(read(utf16("a", false) + lone_low + end), ElementsAre("1:a\xef\xbf\xbd"
                                                                    "b"));
  EXPECT_THAT(read(utf16("a", false) + lone_high + end), ElementsAre("1:a\xef\xbf\xbd"
                                                                     "b"));
  EXPECT_THAT(read(utf16("a", false) + lone_high), ElementsAre("1:a|"));  // cut off within the pair
  EXPECT_THAT(read(utf16("a", false) + "b"), ElementsAre("1:a|"));
}

TEST(Lines, EveryKindOfEnd) {
  EXPECT_THAT(read("a\nb\r\nc\rd"), ElementsAre("1:a", "2:b", "3:c", "3:d|"));
  EXPECT_THAT(read("a\n\nb\n"), ElementsAre("1:a", "2:", "3:b"));
  EXPECT_THAT(read(""), ElementsAre());
  EXPECT_THAT(read("\n"), ElementsAre("1:"));
}

TEST(Lines, LeavesTheByteOrderMarkOut) {
  EXPECT_THAT(read("\xef\xbb\xbf"
                   "a\nb"),
              ElementsAre("1:a", "2:b|"));
}

TEST(Lines, LeavesHolesOut) {
  const std::string hole(20, '\0');
  EXPECT_THAT(read("a\n" + hole + "b\n" + hole), ElementsAre("1:a", "2:b", "3:|"));
}

TEST(Lines, CutsLongOnesAndGoesOn) {
  EXPECT_THAT(read("abcdef\ngh\n", 4), ElementsAre("1:abcd|", "2:gh"));
  const std::string huge(5'000'000, 'x');
  const auto lines = read(fmt::format("{}\nend\n", huge), 1000);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], "2:end");
}

TEST(Lines, JoinsAcrossReads) {
  std::string bytes;
  for (int i = 0; i < 200'000; ++i) {
    bytes += fmt::format("line {}\n", i);
  }
  const auto lines = read(bytes);
  ASSERT_EQ(lines.size(), 200'000U);
  EXPECT_EQ(lines[123'456], "123457:line 123456");
}

TEST(Source, UnpacksGzipAndItsMembers) {
  const std::string two = gzipped("a\n") + gzipped("b\n");
  EXPECT_THAT(read(two + std::string(512, '\0')), ElementsAre("1:a", "2:b"));  // padding, as of a tape
  EXPECT_THAT(read(two), ElementsAre("1:a", "2:b"));
}

TEST(Source, SaysWhenGzipIsCutOffOrDamaged) {
  const std::string whole = gzipped(std::string(100'000, 'x'));
  for (const std::string& bytes : {whole.substr(0, whole.size() / 2), fmt::format("{}garbage", whole.substr(0, 12))}) {
    try {
      read(bytes);
      FAIL() << "nothing was noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_EQ(error.subject(), "memory");
    }
  }
}

TEST(Source, NamesWhatCannotBeRead) {
  TemporaryFolder folder;
  for (const auto& path : {folder.path(), folder.path() / "absent"}) {
    try {
      Source source(path);
      FAIL() << "nothing was noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_EQ(error.subject(), path.string());
    }
  }
}

TEST(Lines, EveryBlockOfALargeFileComesInOrder) {
  const TemporaryFolder folder;
  std::string bytes;
  for (int i = 0; bytes.size() < 3'000'000; ++i) {
    bytes += fmt::format("{} {}\n", i, std::string(static_cast<std::size_t>(i % 301), 'x'));
  }
  write_file_atomic(folder.path() / "log", bytes);
  Source source(folder.path() / "log");
  Lines lines(source);
  std::string_view line;
  std::string again;
  while (lines.next(line)) {
    again.append(line).append("\n");
  }
  EXPECT_TRUE(again == bytes);
  EXPECT_EQ(lines.bytes(), bytes.size());
}

TEST(Lines, MayBeLeftBeforeTheEnd) {
  const std::string bytes(5'000'000, '\n');
  for (int some = 0; some < 20; ++some) {
    Source source("memory", bytes);
    Lines lines(source);
    std::string_view line;
    for (int i = 0; i < some; ++i) {
      EXPECT_TRUE(lines.next(line));
    }
  }
}

TEST(Lines, DamageInALaterBlockIsToldByTheOneWhoReads) {
  std::string bytes;
  for (int i = 0; i < 1'000'000; ++i) {
    bytes += fmt::format("{}\n", i * 7919LL % 1000003);
  }
  std::string packed = gzipped(bytes);
  packed.resize(packed.size() - 100);
  Source source("cut.gz", packed);
  Lines lines(source);
  std::string_view line;
  EXPECT_THROW(while (lines.next(line)){}, Error);
}

}  // namespace
}  // namespace unidle::logs
