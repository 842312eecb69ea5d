// What `unidle data inspect` reports about tar archives.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/inspect/inspection.h"
#include "unidle/data/testing/npy_bytes.h"
#include "unidle/data/testing/pictures.h"

namespace unidle::data {
namespace {

using ArchiveCells = std::vector<std::vector<std::string>>;
using ArchiveNames = std::vector<std::string>;
using Members = std::vector<std::pair<std::string, std::string>>;

std::string ustar_header(const std::string& name, std::size_t bytes) {
  std::string block(512, '\0');
  const auto put = [&](std::size_t at, std::string_view text) { text.copy(block.data() + at, text.size()); };
  put(0, name);
  put(100, "0000644");
  put(124, fmt::format("{:011o}", bytes));
  put(148, "        ");
  put(156, "0");
  put(257, std::string_view("ustar\00000", 8));
  const unsigned sum = std::accumulate(block.begin(), block.end(), 0U,
                                       [](unsigned so_far, char c) { return so_far + static_cast<unsigned char>(c); });
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

class ArchivesTest : public ::testing::Test {
 protected:
  std::string archive(const std::string& name, const Members& members) {
    const std::filesystem::path path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    for (const auto& [member, bytes] : members) {
      file << ustar_header(member, bytes.size()) << bytes << std::string((512 - bytes.size() % 512) % 512, '\0');
    }
    file << std::string(1024, '\0');
    return path.string();
  }
  std::string folder(const std::string& name) const { return (folder_.path() / name).string(); }

  static ArchiveNames places(const Inspection& found) {
    ArchiveNames names;
    for (const Inspection::Problem& problem : found.problems) {
      names.push_back(problem.at.substr(problem.at.rfind('/') + 1));
    }
    return names;
  }

  const std::string png_ = encode_png(testing::test_picture(20, 10));
  const std::string jpeg_ = encode_jpeg(testing::test_picture(8, 8));
  TemporaryFolder folder_;
};

TEST_F(ArchivesTest, TellsWhatSamplesAreMadeOf) {
  const std::string path = archive("s.tar", {{"a1.jpg", jpeg_},
                                             {"a1.cls", "3\n"},
                                             {"a1.json", R"({"of": [1]})"},
                                             {"README", "no sample"},
                                             {"a2.PNG", png_},
                                             {"a2.cls", "4"},
                                             {"a2.txt", "two words "}});
  const Inspection found = inspect({path}, {});
  EXPECT_EQ(to_json(found), nlohmann::ordered_json::parse(R"({
    "kind": "images", "rows": 2,
    "columns": [{"name": "__key__", "type": "text", "missing": 0},
                {"name": "jpg;png", "type": "jpeg, png", "missing": 0},
                {"name": "cls", "type": "integer", "missing": 0},
                {"name": "json", "type": "json", "missing": 1},
                {"name": "txt", "type": "text", "missing": 1}],
    "problems": [],
    "sample": [["a1", "8 x 8", "3", "{\"of\": [1]}", ""], ["a2", "20 x 10", "4", "", "two words"]]})"));
  EXPECT_EQ(found.passed_over, (std::map<std::string, std::uint64_t>{{"", 1}}));
  EXPECT_FALSE(std::filesystem::exists(path + ".unidle-index"));  // inspection writes nothing
}

TEST_F(ArchivesTest, TheKindIsThatOfWhatIsInIt) {
  EXPECT_EQ(inspect({archive("p.tar", {{"1.jpg", jpeg_}, {"1.npy", testing::npy_of_floats("(2,)", 2)}})}, {}).kind,
            "images");
  const Inspection arrays = inspect({archive("n.tar", {{"1.x.npy", testing::npy_of_floats("(2, 3)", 6)}})}, {});
  EXPECT_EQ(arrays.kind, "npy");
  EXPECT_EQ(arrays.columns[1].name, "x.npy");
  EXPECT_EQ(arrays.columns[1].type, "float32 [2, 3]");
  EXPECT_EQ(arrays.sample, (ArchiveCells{{"1", "0, 0, 0, 0, ..."}}));
  EXPECT_EQ(inspect({archive("t.tar", {{"1.cls", "1"}, {"1.txt", "a"}})}, {}).kind, "table");
}

TEST_F(ArchivesTest, TwoPicturesOfASampleAreTwoColumns) {
  const Inspection found = inspect({archive("s.tar", {{"1.jpg", jpeg_}, {"1.png", png_}, {"2.jpg", jpeg_}})}, {});
  ASSERT_EQ(found.columns.size(), 3U);
  EXPECT_EQ(found.columns[2].name, "png");
  EXPECT_EQ(found.columns[2].missing, 1);
  EXPECT_EQ(places(found), (ArchiveNames{"s.tar:2"}));
}

TEST_F(ArchivesTest, TheLastPartOfANameSaysWhatItIs) {
  const std::string path = archive("s.tar", {{"a.left.jpg", jpeg_},
                                             {"a.mask.PNG", png_},
                                             {"a.side.cls", "3"},
                                             {"a.meta.json", "[1]"},
                                             {"a.jpg.txt", "words"},
                                             {"b.left.png", png_},
                                             {"b.mask.png", png_},
                                             {"b.side.cls", "x"}});
  const Inspection found = inspect({path}, {});
  EXPECT_EQ(found.kind, "images");
  EXPECT_EQ(to_json(found)["columns"], nlohmann::ordered_json::parse(R"([
    {"name": "__key__", "type": "text", "missing": 0},
    {"name": "left.jpg;left.png", "type": "jpeg, png", "missing": 0},
    {"name": "mask.png", "type": "png", "missing": 0},
    {"name": "side.cls", "type": "integer", "missing": 0},
    {"name": "meta.json", "type": "json", "missing": 1},
    {"name": "jpg.txt", "type": "text", "missing": 1}])"));
  EXPECT_EQ(places(found), (ArchiveNames{"s.tar:b.side.cls"}));
}

TEST_F(ArchivesTest, SaysThatAnotherArchiveFollowsInTheFile) {
  for (const std::size_t padding : {0, 512, 18 * 512, 20 * 512, 1 << 20}) {
    const std::string first = archive("a.tar", {{"1.cls", "1"}});
    const std::string bytes = read_file(first) + std::string(padding, '\0');
    std::ofstream(first, std::ios::binary) << bytes << read_file(archive("b.tar", {{"2.cls", "2"}}));
    const Inspection found = inspect({first}, {});
    ASSERT_EQ(found.problems.size(), 1U) << padding;
    EXPECT_THAT(found.problems[0].what,
                ::testing::StartsWith(fmt::format("ends at byte 1024, and more follows at byte {}", bytes.size())));
    std::ofstream(first, std::ios::binary) << bytes;
    EXPECT_EQ(inspect({first}, {}).problems.size(), 0U) << padding;
  }
}

TEST_F(ArchivesTest, NamesTheMemberThatIsWrong) {
  archive("f/s_2.tar", {{"in/1.jpg", jpeg_},
                        {"in/1.npy", testing::npy_of_floats("(2,)", 2)},
                        {"in/1.cls", "one"},
                        {"in/1.json", "{"},
                        {"in/2.jpg", jpeg_.substr(0, jpeg_.size() / 2)},
                        {"in/2.npy", testing::npy_of_floats("(3,)", 3)},
                        {"in/3.jpg", jpeg_},
                        {"in/3.npy", testing::npy_of_floats("(2,)", 1)},
                        {"in/3.cls", "5"}});
  archive("f/s_10.tar", {{"1.jpg", jpeg_}, {"1.jpg", jpeg_}});
  std::ofstream(folder("f/s_11.tar")) << std::string(600, 'x');
  const Inspection found = inspect({folder("f")}, {.sample_rows = 1});
  EXPECT_EQ(found.rows, 3);
  EXPECT_EQ(places(found),
            (ArchiveNames{"s_10.tar:1.jpg", "s_11.tar", "1.cls", "1.json", "2.jpg", "2.npy", "2", "3.npy"}));
  EXPECT_NE(found.problems[2].at.find("s_2.tar:in/1.cls"), std::string::npos);
  EXPECT_NE(found.problems[5].what.find("float32 [3]; expected float32 [2]"), std::string::npos);
  EXPECT_EQ(found.problems[6].what, "has no .cls");
  EXPECT_TRUE(found.passed_over.empty());
}

/// An archive with sparse members, which take no disk space: their starts and sizes.
std::string archive_of_holes(const std::filesystem::path& path,
                             const std::vector<std::tuple<std::string, std::string, std::uint64_t>>& members) {
  std::ofstream file(path, std::ios::binary);
  std::uint64_t at = 0;
  for (const auto& [name, start, bytes] : members) {
    file.seekp(static_cast<std::streamoff>(at));
    file << ustar_header(name, bytes) << start;
    at += 512 + (bytes + 511) / 512 * 512;
  }
  file.close();
  std::filesystem::resize_file(path, at + 1024);
  return path.string();
}

TEST_F(ArchivesTest, NoMoreOfAMemberIsReadThanIsNeeded) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes more addresses than the limit leaves, and ends the program where memory lacks";
#endif
  constexpr std::uint64_t kLarge = (std::uint64_t{1} << 33) - 512;
  constexpr std::uint64_t kHeader = 128;
  const std::string tensor = testing::npy_of_floats(fmt::format("({},)", (kLarge - kHeader) / sizeof(float)), 0);
  ASSERT_EQ(tensor.size(), kHeader);
  const std::string path = archive_of_holes(folder("s.tar"), {{"1.npy", tensor, kLarge},
                                                              {"1.txt", std::string(70'000, 'a'), kLarge},
                                                              {"1.cls", "7", kLarge},
                                                              {"1.json", "{}", kLarge},
                                                              {"1.png", png_.substr(0, 60), kLarge},
                                                              {"2.npy", tensor, kLarge},
                                                              {"2.cls", "7", 1},
                                                              {"2.png", "no picture", kLarge},
                                                              {"3.npy", tensor, kLarge},
                                                              {"3.cls", "7", 1},
                                                              {"3.png", png_.substr(0, 60), kLarge / 5}});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit small{pages * static_cast<std::uint64_t>(::getpagesize()) + kLarge / 8, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &small), 0);
  const Inspection found = inspect({path}, {});
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(places(found), (ArchiveNames{"s.tar:1.cls", "s.tar:1.json", "s.tar:1.png", "s.tar:2.png", "s.tar:3.png"}));
  for (std::size_t problem : {0, 1, 2}) {
    EXPECT_NE(found.problems[problem].what.find("expected at most"), std::string::npos) << found.problems[problem].what;
  }
  EXPECT_NE(found.problems[3].what.find("neither PNG nor JPEG nor WebP"), std::string::npos);
  EXPECT_NE(found.problems[4].what.find("too large for the memory"), std::string::npos) << found.problems[4].what;
  EXPECT_EQ(found.sample[0],
            (std::vector<std::string>{"1", "0, 0, 0, 0, ...", fmt::format("{} bytes", kLarge), "", "", ""}));
}

TEST_F(ArchivesTest, TextsAreKnownByTheirStart) {
  const std::string umlauts = [] {
    std::string text = "x";  // makes the start end within a character
    while (text.size() < 70'000) {
      text += "\u00fc";
    }
    return text;
  }();
  const Inspection found = inspect({archive("s.tar", {{"1.txt", umlauts},
                                                      {"1.bin", std::string(70'000, '\xff')},
                                                      {"1.json", "[" + std::string(70'000, ' ') + "]"}})},
                                   {});
  EXPECT_TRUE(found.problems.empty());
  EXPECT_EQ(found.columns[1].type, "text");
  EXPECT_EQ(found.columns[2].type, "bytes");
  EXPECT_EQ(found.sample[0], (std::vector<std::string>{"1", "70001 bytes", "70000 bytes", "70002 bytes"}));
}

TEST_F(ArchivesTest, SeveralArchivesAreOne) {
  const std::string first = archive("a.tar", {{"1.cls", "1"}});
  const std::string second = archive("b.tar", {{"2.cls", "2"}});
  EXPECT_EQ(inspect({first, second}, {}).rows, 2);
  EXPECT_THROW(inspect({first, folder("c.csv")}, {}), Error);
  EXPECT_EQ(places(inspect({archive("empty.tar", {})}, {})), (ArchiveNames{"empty.tar"}));
}

}  // namespace
}  // namespace unidle::data
