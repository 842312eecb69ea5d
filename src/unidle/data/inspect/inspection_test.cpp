#include "unidle/data/inspect/inspection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/testing/npy_bytes.h"
#include "unidle/data/testing/pictures.h"

namespace unidle::data {
namespace {

class InspectionTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, std::string_view bytes) {
    const std::filesystem::path path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  std::string folder(const std::string& name = {}) const { return (folder_.path() / name).string(); }

  static std::vector<std::string> places(const Inspection& found) {
    std::vector<std::string> names;
    for (const Inspection::Problem& problem : found.problems) {
      names.push_back(std::filesystem::path(problem.at).filename().string());
    }
    return names;
  }

  TemporaryFolder folder_;
};

using Cells = std::vector<std::vector<std::string>>;
using Names = std::vector<std::string>;

TEST_F(InspectionTest, TellsColumnsAndCellsOfATable) {
  const Inspection found = inspect(
      {put("a.csv", "\xef\xbb\xbfid,\"the, city\",x,gaps\r\n1,\"a \"\"b\"\"\nc\",1.5,\r\n,Rome,2,NA\r\n3,Oslo,1e3,")},
      {.sample_rows = 2});
  EXPECT_EQ(to_json(found), nlohmann::ordered_json::parse(R"({
    "kind": "table", "rows": 3,
    "columns": [{"name": "id", "type": "integer", "missing": 1}, {"name": "the, city", "type": "text", "missing": 0},
                {"name": "x", "type": "float", "missing": 0}, {"name": "gaps", "type": "float", "missing": 3}],
    "problems": [],
    "sample": [["1", "a \"b\"\nc", "1.5", ""], ["", "Rome", "2", "NA"]]})"));
}

TEST_F(InspectionTest, WordsForNoValueAreTextsAmongTexts) {
  const Inspection found = inspect({put("a.csv", "code,x\nNA,1\nDE,NA\nNone,2\n ,null\n")}, {});
  EXPECT_EQ(found.columns[0].type, "text");
  EXPECT_EQ(found.columns[0].missing, 1);
  EXPECT_EQ(found.columns[1].type, "integer");
  EXPECT_EQ(found.columns[1].missing, 2);
}

TEST_F(InspectionTest, TellsEveryFaultOfATableWithItsPlace) {
  put("log_part1.csv", "a,b\n1,x\n2,y\n");
  put("log_part2.csv", "a,b\n3,\"q\nr\"\nfour,z\n5,\"a\"x\n6,7,8\n9\n10,ok\n");
  put("log_part3.csv", "b,a\n1,2\n");
  put("log_part4.csv", "a,b\n1,2\n3,\"4\n5,6\n");
  put("log_part5.csv", "");
  const Inspection found = inspect({folder("log.csv")}, {});
  EXPECT_EQ(found.rows, 6);
  EXPECT_EQ(found.columns[0].type, "integer");
  EXPECT_EQ(found.columns[1].type, "text");
  EXPECT_EQ(places(found), (Names{"log_part3.csv:1", "log_part5.csv:1", "log_part2.csv:5", "log_part2.csv:6",
                                  "log_part2.csv:7", "log_part4.csv:3", "log_part2.csv:4"}));
}

TEST_F(InspectionTest, TextsAmongNumbersAreFaultsWhereNumbersPrevail) {
  put("t_part1.csv", "mixed,strays\n1,1\n2,2\n");
  put("t_part2.csv", "mixed,strays\n1,x\nA/5,2\nB,3\nC,4\nD,5\n");
  const Inspection found = inspect({folder("t_part2.csv"), folder("t_part1.csv")}, {});
  EXPECT_EQ(found.columns[0].type, "text");
  EXPECT_EQ(found.columns[1].type, "integer");
  EXPECT_EQ(places(found), (Names{"t_part2.csv:2"}));
}

TEST_F(InspectionTest, RecordsOfOtherColumnsAreCountedAPart) {
  std::string text = "a,b\n";
  for (int i = 0; i < 50; ++i) {
    text += "1,2,3\n";
  }
  const Inspection found = inspect({put("t_part1.csv", text), put("t_part2.csv", "a,b\n1,2\n3\n")}, {});
  EXPECT_EQ(places(found),
            (Names{"t_part1.csv:2", "t_part1.csv:3", "t_part1.csv:4", "t_part1.csv:5", "t_part2.csv:3"}));
  EXPECT_EQ(found.problems[0].what, "has 3 columns; expected 2");
  EXPECT_EQ(found.problems[3].what, "and 47 more like these, 50 in all");
}

TEST_F(InspectionTest, SaysThatADelimiterEndsTheRows) {
  const auto what = [&](const char* text) { return inspect({put("a.tsv", text)}, {}).problems.at(0).what; };
  EXPECT_EQ(what("a\tb\n1\t2\t\n"), "has 3 columns; expected 2 ('\\t' ends the line; end the first line so too)");
  EXPECT_EQ(what("a\tb\r\n1\t2\t\r\n"), "has 3 columns; expected 2 ('\\t' ends the line; end the first line so too)");
  EXPECT_EQ(what("a\tb\n1\t2\t3\n"), "has 3 columns; expected 2");
  EXPECT_TRUE(inspect({put("a.tsv", "a\tb\t\n1\t2\t\n")}, {}).problems.empty());
}

TEST_F(InspectionTest, SaysThatHeaderAndRowsArePartedDifferently) {
  const Inspection found = inspect({put("a.csv", "a;b;c\n1,2,3\n")}, {});
  ASSERT_EQ(found.problems.size(), 1U);
  EXPECT_EQ(found.problems[0].what,
            "has 1 columns; expected 3 (the first line parts its names by ';', this one its cells by ',')");
}

TEST_F(InspectionTest, LinesOfOldMacsAreLines) {
  const Inspection found = inspect({put("a.csv", "a,b\r1,x\r\"2\",y")}, {.sample_rows = 9});
  EXPECT_EQ(found.rows, 2);
  EXPECT_TRUE(found.problems.empty());
  EXPECT_EQ(found.sample, (Cells{{"1", "x"}, {"2", "y"}}));
  EXPECT_EQ(places(inspect({put("b.csv", "a,b\r1,x\r2\r")}, {})), (Names{"b.csv:3"}));
  EXPECT_EQ(inspect({put("c.txt", "ab\rcd\r")}, {}).rows, 2);
}

TEST_F(InspectionTest, CellsThatAreNoUtf8AreFaultsAndCounted) {
  const Inspection found =
      inspect({put("a.csv", "a,b\n1,caf\xe9\n2,caf\xc3\xa9\n3,\xe9\n4,\xe9\n5,\xe9\n6,\xe9\n")}, {});
  EXPECT_EQ(places(found), (Names{"a.csv:2", "a.csv:4", "a.csv:5", "a.csv:6"}));
  EXPECT_EQ(found.problems[3].what, "and 2 more like these, 5 in all");
  EXPECT_EQ(places(inspect({put("b.csv", "a,caf\xe9\n1,2\n")}, {})), (Names{"b.csv:1"}));
}

TEST_F(InspectionTest, ListsAHundredFaultsAndCountsTheRest) {
  std::string text = "a,b\n";
  for (int i = 0; i < 150; ++i) {
    text += "1,\"2\"3\n";
  }
  const Inspection found = inspect({put("a.csv", text)}, {});
  EXPECT_EQ(found.problems.size(), 101U);
  EXPECT_EQ(found.problems.back().what, "this and 49 more problems are not listed");
}

TEST_F(InspectionTest, DecodesEveryPicture) {
  const std::string png = encode_png(testing::test_picture(20, 10));
  put("p/cat/1.png", png);
  put("p/cat/2.png", png.substr(0, png.size() / 2));
  put("p/dog/3.jpg", encode_jpeg(testing::test_picture(8, 8)));
  const Inspection found = inspect({folder("p")}, {.sample_rows = 1});
  EXPECT_EQ(found.kind, "images");
  EXPECT_EQ(found.rows, 3);
  EXPECT_EQ(found.columns[0].type, "jpeg, png");
  EXPECT_EQ(places(found), (Names{"2.png"}));
  EXPECT_EQ(found.sample, (Cells{{"cat/1.png", "20 x 10", "cat"}}));
  const Inspection listed = inspect({put("list.txt", "p/cat/1.png 1\np/none.png 2\n")}, {.sample_rows = 1});
  EXPECT_EQ(listed.kind, "images");
  EXPECT_EQ(places(listed), (Names{"none.png"}));
  EXPECT_EQ(listed.sample, (Cells{{"p/cat/1.png", "20 x 10", "1"}}));
}

TEST_F(InspectionTest, ComparesPairs) {
  for (const char* name : {"1.png", "2.png", "3.png"}) {
    testing::write_pair(folder("s"), name, testing::test_picture(32, 16), 4);
  }
  std::filesystem::remove(folder("s/low/2.png"));
  put("s/high/3.png", encode_png(testing::test_picture(32, 20)));
  const Inspection found = inspect({folder("s")}, {.sample_rows = 1});
  EXPECT_EQ(found.kind, "pairs");
  EXPECT_EQ(found.rows, 2);
  EXPECT_EQ(found.columns[0].missing, 1);
  EXPECT_EQ(places(found), (Names{"2.png", "3.png"}));
  EXPECT_EQ(found.sample, (Cells{{"1.png 8 x 4", "1.png 32 x 16"}}));
}

TEST_F(InspectionTest, FindsTheFieldsOfShards) {
  put("n/image_1.npy", testing::npy_of_floats("(2, 3)", 6));
  put("n/image_2.npy", testing::npy_of_floats("(1, 3)", 3));
  put("n/heat_1.npy", testing::npy_of_floats("(2,)", 2));
  put("n/heat_2.npy", testing::npy_of_floats("(1,)", 1));
  const Inspection found = inspect({folder("n")}, {.sample_rows = 1});
  EXPECT_EQ(found.kind, "npy");
  EXPECT_EQ(found.rows, 3);
  ASSERT_EQ(found.columns.size(), 2U);
  EXPECT_EQ(found.columns[1].name, "image");
  EXPECT_EQ(found.columns[1].type, "float32 [3]");
  EXPECT_EQ(found.sample, (Cells{{"0", "0, 0, 0"}}));
  EXPECT_TRUE(found.problems.empty());
  put("n/heat_2.npy", testing::npy_of_floats("(1,)", 0));
  put("n/image_2.npy", testing::npy_of_floats("(1, 4)", 4));
  EXPECT_EQ(places(inspect({folder("n")}, {})), (Names{"heat_2.npy", "image_2.npy"}));
}

TEST_F(InspectionTest, CountsFilesOfOtherKindsInAFolder) {
  put("m/a.csv", "x\n1\n");
  EXPECT_TRUE(inspect({folder("m")}, {}).passed_over.empty());
  for (const char* name : {"m/b.npy", "m/c.NPY", "m/notes", "m/.hidden", "m/below/d.txt"}) {
    put(name, "");
  }
  EXPECT_EQ(inspect({folder("m")}, {}).passed_over, (std::map<std::string, std::uint64_t>{{"", 1}, {".npy", 2}}));
}

TEST_F(InspectionTest, TellsNumbersOfHalfTheWidth) {
  std::string file = testing::npy_of_floats("(4, 2)", 0);
  file.replace(file.find("<f4"), 3, "<f2");
  // 1, -2; the smallest and largest numbers; the smallest normal number, zero; infinity, NaN
  for (const int bits : {0x3C00, 0xC000, 0x0001, 0x7BFF, 0x0400, 0x0000, 0xFC00, 0x7E00}) {
    file += {static_cast<char>(bits & 0xFF), static_cast<char>(bits >> 8)};
  }
  const Inspection found = inspect({put("half.npy", file)}, {.sample_rows = 4});
  EXPECT_EQ(found.sample, (Cells{{"1, -2"}, {"5.9604645e-08, 65504"}, {"6.1035156e-05, 0"}, {"-inf, nan"}}));
}

TEST_F(InspectionTest, ReadsSequences) {
  const Inspection fasta = inspect({put("a.fasta", ">one\nAC\nGT\n>two\n>\nA\n")}, {.sample_rows = 1});
  EXPECT_EQ(fasta.kind, "sequences");
  EXPECT_EQ(fasta.rows, 3);
  EXPECT_EQ(fasta.sample, (Cells{{"one", "ACGT"}}));
  EXPECT_EQ(places(fasta), (Names{"a.fasta:4"}));
  const Inspection lines = inspect({put("a.txt", "ab\r\n\ncd")}, {});
  EXPECT_EQ(lines.sample, (Cells{{"ab"}, {"cd"}}));
  EXPECT_EQ(places(inspect({put("b.txt", std::string_view("a\n\0", 3))}, {})), (Names{"b.txt:2"}));
}

TEST_F(InspectionTest, RefusesWhatIsNotThere) {
  std::filesystem::create_directories(folder("empty"));
  for (const std::vector<std::string>& paths :
       std::vector<Names>{{folder("none.csv")}, {folder("none")}, {folder("empty")}}) {
    try {
      inspect(paths, {});
      FAIL() << paths[0];
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
    }
  }
  EXPECT_THROW(inspect({folder("empty"), put("a.csv", "a\n1\n")}, {}), Error);
}

TEST_F(InspectionTest, NamesFilesThatAreNoneOfTheKinds) {
  const auto said = [&](const std::string& name, std::string_view bytes) {
    try {
      inspect({put(name, bytes)}, {});
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_EQ(said("one.png", "\x89PNG"), "is a single picture");
  EXPECT_EQ(said("rows.jsonl", "{\"text\": \"a\"}\n"), "is JSON, whose lines no source takes apart");
  EXPECT_EQ(said("lines.txt.gz", "\x1f\x8b\x08"), "is compressed with gzip; expected text");
  EXPECT_EQ(said("rows.parquet", std::string_view("PAR1\x15\0 and more", 15)), "is a Parquet file; expected text");
  const std::string signature = "\x89HDF\r\n\x1a\n";
  for (const std::size_t at : {0, 512, 2048}) {
    EXPECT_EQ(said(fmt::format("{}.h5", at), std::string(at, '\0') + signature + std::string(100, '\0')),
              "is an HDF5 file; expected text");
  }
  EXPECT_EQ(said("a.zip", "PK\x03\x04"),
            "is a zip archive (Excel files and torch checkpoints are zip archives too); expected text");
  put("many/a.h5", signature);
  EXPECT_THAT(said("many/b.h5", signature), ::testing::StartsWith("is an HDF5 file"));
  try {
    inspect({folder("many")}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), ::testing::MatchesRegex("holds no files of a known kind; [ab].h5 is an HDF5 file"));
    EXPECT_THAT(error.hint(), ::testing::HasSubstr("h5py"));
  }
}

TEST_F(InspectionTest, BytesThatBeginLikeAnotherFormatMayBeText) {
  EXPECT_TRUE(inspect({put("a.csv", "PAR1,BZh\n1,2\n")}, {}).problems.empty());
  EXPECT_TRUE(inspect({put("a.txt", "PAR1 and more\n")}, {}).problems.empty());
}

TEST_F(InspectionTest, CompressedFilesAreToldHoweverShort) {
  const std::string_view gzip("\x1f\x8b\x08\0\0\0", 6);
  for (const char* name : {"a.csv", "a.tar"}) {
    const Inspection found = inspect({put(name, gzip)}, {});
    ASSERT_EQ(found.problems.size(), 1) << name;
    EXPECT_THAT(found.problems[0].what, ::testing::StartsWith("is compressed with gzip; expected")) << name;
  }
}

TEST_F(InspectionTest, TypesOfArraysThatNoBatchHoldsAreToldByTheirNames) {
  const auto said = [&](const std::string& type) {
    const Inspection found = inspect({put("a.npy", testing::npy_of(type, "(1,)", std::string(16, '\0')))}, {});
    return found.problems.at(0).what;
  };
  EXPECT_EQ(said("<c8"),
            "holds complex numbers (<c8); expected real numbers or booleans of up to 8 bytes (save "
            "array.view(\"float32\"): the real and the imaginary parts, side by side)");
  EXPECT_THAT(said("<c16"), ::testing::HasSubstr("array.view(\"float64\")"));
  EXPECT_THAT(said("<U4"), ::testing::StartsWith("holds texts (<U4); expected"));
  EXPECT_THAT(said("<M8[D]"), ::testing::HasSubstr("array.view(\"int64\")"));
  EXPECT_THAT(said("|O"), ::testing::StartsWith("holds Python objects (|O); expected"));
}

}  // namespace
}  // namespace unidle::data
