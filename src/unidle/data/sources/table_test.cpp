#include "unidle/data/sources/table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "unidle/base/error.h"
#include "unidle/base/testing/failing_disk.h"
#include "unidle/data/loader.h"
#include "unidle/data/testing/table_files.h"

namespace unidle::data {
namespace {

using testing::Row;

class TableSourceTest : public testing::TableTest {};

TEST_F(TableSourceTest, ReadsNumbersTextsAndGaps) {
  TableOptions wanted = options({put("a.csv",
                                     "\xef\xbb\xbf"
                                     "x,\"the \"\"city\"\"\",y,note\r\n"
                                     "1,Paris,2.5,\"two\r\nlines\"\r\n"
                                     "\r\n"
                                     "-1e3,\"Rome, Italy\",,b\r\n"
                                     "NA,Paris,\"7\",c")});
  wanted.features = {"x", "the \"city\""};
  wanted.targets = {"y"};
  wanted.categorical = {"the \"city\""};
  const TableSource source(wanted);
  const std::vector<Row> rows = rows_of(source);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0], (Row{1, 0, 2.5}));
  EXPECT_EQ(rows[1][0], -1000);
  EXPECT_EQ(rows[1][1], 1);
  EXPECT_TRUE(std::isnan(rows[1][2]));
  EXPECT_TRUE(std::isnan(rows[2][0]));
  EXPECT_EQ(rows[2][1], 0);
  EXPECT_EQ(rows[2][2], 7);
  ASSERT_EQ(source.columns().size(), 3U);
  EXPECT_EQ(source.columns()[0].type, "float");  // -1e3
  EXPECT_EQ(source.columns()[0].missing, 1);
  EXPECT_EQ(source.columns()[1].categories, (std::vector<std::string>{"Paris", "Rome, Italy"}));
  EXPECT_EQ(source.columns()[2].type, "float");
}

TEST_F(TableSourceTest, AValueIsFoundByItsRowAndColumn) {
  TableOptions wanted = options({put("a.csv", "x,y,z\n1,2,3\n4,5,6\n7,8,9\n")});
  wanted.targets = {"y"};
  const TableSource source(wanted);
  EXPECT_EQ(source.value_name(1, 0, 1), "'z' in row 2 of a.csv (headers not counted)");
  EXPECT_EQ(source.value_name(2, 1, 0), "'y' in row 3 of a.csv (headers not counted)");
  wanted.paths.push_back(put("b.csv", "x,y,z\n1,2,3\n"));
  EXPECT_EQ(TableSource(wanted).value_name(3, 0, 0), "'x' in row 4 of all rows of 2 files (headers not counted)");
}

TEST_F(TableSourceTest, AFolderIsAllItsTablesInLettersOfEitherCase) {
  put("all/a.csv", "x,y\n1,2\n");
  put("all/b.CSV", "x,y\n3,4\n");
  put("all/notes.txt", "neither\n");
  EXPECT_EQ(rows_of(TableSource(options({(folder_.path() / "all").string()}))), (std::vector<Row>{{1, 2}, {3, 4}}));
}

TEST_F(TableSourceTest, PartsFollowTheirNumbersWithAndWithoutHeader) {
  put("log_part2.csv", "a,b\n3,4\n");
  put("log_part10.csv", "5,6\n");
  put("log_part1.csv", "a,b\n1,2\n");
  const std::string name = (folder_.path() / "log.csv").string();
  const std::vector<Row> expected{{1, 2}, {3, 4}, {5, 6}};
  EXPECT_EQ(rows_of(TableSource(options({name}))), expected);
  const auto part = [&](int number) {
    return (folder_.path() / ("log_part" + std::to_string(number) + ".csv")).string();
  };
  EXPECT_EQ(rows_of(TableSource(options({part(1), part(10), part(2)}))), expected);
  EXPECT_EQ(rows_of(TableSource(options({folder_.path().string()}))), expected);
}

TEST_F(TableSourceTest, SaysWhereAndWhatIsWrong) {
  const std::string good = put("t_part1.csv", "a,b\n1,2\n");
  expect_error(options({good, put("t_part2.csv", "b,a\n1,2\n")}), ErrorCode::kInput, "t_part2.csv:1");
  expect_error(options({good, put("t_part3.csv", "a,b\n1,2\n\"\n\",2\n1,2,3\n")}), ErrorCode::kInput, "t_part3.csv:3");
  expect_error(options({good, put("t_part4.csv", "a,b\n1,2\n1\n")}), ErrorCode::kInput, "t_part4.csv:3");
  expect_error(options({good, put("t_part5.csv", "a,b\n1,2\n3,four\n")}), ErrorCode::kInput, "t_part5.csv:3");
  expect_error(options({good, put("t_part6.csv", "a,b\n1,2\n3,\"4\n")}), ErrorCode::kInput, "t_part6.csv:3");
  expect_error(options({put("empty.csv", "")}), ErrorCode::kInput, "empty.csv:1");
  expect_error(options({put("gzip.csv", "\x1f\x8b\x08,a\n1,2\n")}), ErrorCode::kInput, "gzip.csv");
  expect_error(options({put("wide.csv",
                            "\xff\xfe"
                            "a")}),
               ErrorCode::kInput, "wide.csv:1");
  expect_error(options({put("twice.csv", "a,a\n1,2\n")}), ErrorCode::kInput, "twice.csv:1");
  expect_error(options({(folder_.path() / "none.csv").string()}), ErrorCode::kInput, "none.csv");
  TableOptions wanted = options({good});
  wanted.targets = {"c"};
  expect_error(wanted, ErrorCode::kInput, "t_part1.csv:1");
  wanted.features = {"a"};
  wanted.targets = {"a"};
  expect_error(wanted, ErrorCode::kUsage, "table column a");
  wanted = options({good});
  wanted.split.validation = 1;
  expect_error(wanted, ErrorCode::kUsage, "validation");
}

TEST_F(TableSourceTest, ColumnsOfTextsAreLeftOutUnlessAskedFor) {
  TableOptions wanted = options({put("a.csv", ",day,x,kind\n0,2020-01-01,1,a\n1,2020-01-02,2,b\n")});
  const TableSource numbers(wanted);
  EXPECT_EQ(numbers.fields().size(), 1U);
  EXPECT_EQ(rows_of(numbers), (std::vector<Row>{{1}, {2}}));
  wanted.categorical = {"kind"};
  EXPECT_EQ(rows_of(TableSource(wanted)), (std::vector<Row>{{1, 0}, {2, 1}}));
}

TEST_F(TableSourceTest, AColumnOfNumbersIsNotLeftOutForOneBadCell) {
  std::string text = "x,code\n";
  for (int row = 0; row < 200; ++row) {
    text += (row == 150 ? "bad," : std::to_string(row) + ",") + (row % 10 == 0 ? "A7\n" : "7\n");
  }
  TableOptions wanted = options({put("a.csv", text)});
  expect_error(wanted, ErrorCode::kInput, "a.csv:152");
  wanted.features = {"code"};
  wanted.categorical = {"code"};
  EXPECT_EQ(rows_of(TableSource(wanted)).size(), 200U);
}

std::string large_table(std::int64_t rows) {
  std::mt19937 random(1);
  std::string text = "number,word,noise\n";
  for (std::int64_t row = 0; row < rows; ++row) {
    text += std::to_string(row) + (row % 5 == 0 ? ",\"w\n" : ",\"w ") + std::to_string(random() % 1000) + "\"," +
            std::to_string(random() % 100000) + "." + std::to_string(random() % 1000) + "\n";
  }
  return text;
}

TEST_F(TableSourceTest, TheBuiltFileIsTheSameForAnyNumberOfThreads) {
  TableOptions wanted = options({put("a_part1.csv", large_table(400'000)), put("a_part2.csv", large_table(1000))});
  wanted.categorical = {"word"};
  wanted.split.validation = 0.25;
  std::set<std::string> files;
  for (const int threads : {1, 2, 7}) {
    wanted.threads = threads;
    wanted.cache = (folder_.path() / std::to_string(threads)).string();
    const TableSource source(wanted);
    EXPECT_EQ(source.items(), 401'000);
    EXPECT_EQ(row_of(source, 399'999)[0], 399'999);
    EXPECT_EQ(row_of(source, 400'001)[0], 1);
    files.insert(read_file(built_file(source)));
  }
  EXPECT_EQ(files.size(), 1U);
}

TEST_F(TableSourceTest, TheFirstOfSeveralFaultsIsTold) {
  std::string text = large_table(300'000);
  text.insert(text.size() - 1, "x");
  text.insert(text.find('\n', text.size() / 2) + 1, "1,2\n");
  for (const int threads : {1, 3, 6}) {
    TableOptions wanted = options({put("a.csv", text)});
    wanted.threads = threads;
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find("\n1,2\n")) + 1, '\n');
    expect_error(wanted, ErrorCode::kInput, "a.csv:" + std::to_string(line));
  }
}

TEST_F(TableSourceTest, IsBuiltOnceAndAnewWhenAFileChanges) {
  const std::string path = put("a.csv", "a,b\n1,2\n");
  const TableOptions wanted = options({path});
  EXPECT_TRUE(was_built(TableSource(wanted)));
  const TableSource old(wanted);
  EXPECT_FALSE(was_built(old));
  put("a.csv", "a,b\n5,6\n");  // the same size
  const TableSource changed(wanted);
  EXPECT_TRUE(was_built(changed));
  EXPECT_EQ(rows_of(changed), (std::vector<Row>{{5, 6}}));
  EXPECT_EQ(rows_of(old), (std::vector<Row>{{1, 2}}));  // still the mapped file
  TableOptions others = wanted;
  others.features = {"b"};
  EXPECT_TRUE(was_built(TableSource(others)));
  EXPECT_FALSE(was_built(TableSource(wanted)));
}

TEST_F(TableSourceTest, ADamagedTableIsBuiltAnew) {
  const TableOptions wanted = options({put("a.csv", "a,b\n1,2\n3,4\n")});
  const std::filesystem::path path = built_file(TableSource(wanted));
  std::string bytes = read_file(path);
  write_file_atomic(path, std::string_view(bytes).substr(0, bytes.size() - 1));
  EXPECT_TRUE(was_built(TableSource(wanted)));
  bytes[0] ^= 1;  // a value, which is checked at its first use
  write_file_atomic(path, bytes);
  const TableSource source(wanted);
  EXPECT_FALSE(was_built(source));
  try {
    row_of(source, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  }
  EXPECT_EQ(rows_of(TableSource(wanted)), (std::vector<Row>{{1, 2}, {3, 4}}));
}

TEST_F(TableSourceTest, AKilledBuildLeavesNoTableOrAGoodOne) {
  TableOptions wanted = options({put("a.csv", large_table(20'000))});
  wanted.threads = 2;
  const TableSource first(wanted);
  const std::filesystem::path path = built_file(first);
  const std::string good = read_file(path);
  std::mt19937 random(11);
  int killed = 0;
  for (int round = 0; round < 30; ++round) {
    std::filesystem::remove(path);  // leftovers of a killed build stay
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const TableSource source(wanted);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed += WIFSIGNALED(status) ? 1 : 0;
    const TableSource source(wanted);  // opens the existing one, or builds it
    ASSERT_EQ(read_file(path), good);
    ASSERT_EQ(row_of(source, 19'999)[0], 19'999);
  }
  EXPECT_GT(killed, 0);
}

TEST_F(TableSourceTest, OneProcessBuildsAndTheOthersWait) {
  TableOptions wanted = options({put("a.csv", large_table(100'000))});
  wanted.threads = 1;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    ASSERT_GE(children.back(), 0);
    if (children.back() == 0) {
      const TableSource source(wanted);
      ::_exit(was_built(source) ? 1 : row_of(source, 99'999)[0] == 99'999 ? 0 : 2);
    }
  }
  int built = 0;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    built += WEXITSTATUS(status);
  }
  EXPECT_EQ(built, 1);
}

TEST_F(TableSourceTest, FilesThatChangeWhileTheyAreReadMakeNoTable) {
  TableOptions wanted = options({put("a.csv", "a,b\n1,2\n")});
  wanted.progress = [&](std::uint64_t, std::uint64_t) { put("a.csv", "a,b\n3,4\n"); };
  expect_error(wanted, ErrorCode::kInput, "a.csv");
  wanted.progress = {};
  const TableSource source(wanted);
  EXPECT_TRUE(was_built(source));
  EXPECT_EQ(rows_of(source), (std::vector<Row>{{3, 4}}));
}

TEST_F(TableSourceTest, ADiskThatRefusesLeavesNoTableOrAGoodOne) {
  const TableOptions wanted = options({put("a.csv", "a,b\n1,2\n3,4\n")});
  int refused = 0;
  unidle::testing::at_each_failure([&](unidle::testing::FailingDisk& disk) {
    std::filesystem::remove_all(wanted.cache);
    try {
      const TableSource source(wanted, disk);
      EXPECT_EQ(rows_of(source), (std::vector<Row>{{1, 2}, {3, 4}}));
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), ErrorCode::kIo);
    }
    EXPECT_EQ(rows_of(TableSource(wanted)), (std::vector<Row>{{1, 2}, {3, 4}}));
  });
  EXPECT_GE(refused, 10);  // folder, file, bytes, sync and name; each alone and with everything after it
}

TEST_F(TableSourceTest, ValidationRowsAreThoseOfTheSplitWhateverTheirPlace) {
  std::string forwards = "id,v\n";
  std::string backwards = "id,v\n";
  for (int row = 0; row < 4000; ++row) {
    forwards += std::to_string(row) + ",1\n";
    backwards += std::to_string(3999 - row) + ",1\n";
  }
  const auto ids = [&](const std::string& path, TablePart part) {
    TableOptions wanted = options({path});
    wanted.split.validation = 0.2;
    wanted.part = part;
    std::set<float> found;
    for (const Row& row : rows_of(TableSource(wanted))) {
      found.insert(row[0]);
    }
    return found;
  };
  const std::set<float> validation = ids(put("f.csv", forwards), TablePart::kValidation);
  const std::set<float> train = ids(put("f.csv", forwards), TablePart::kTrain);
  EXPECT_NEAR(static_cast<double>(validation.size()), 800, 100);
  EXPECT_EQ(validation.size() + train.size(), 4000U);
  EXPECT_EQ(ids(put("b.csv", backwards), TablePart::kValidation), validation);
}

TEST_F(TableSourceTest, RowsWithTheSameCellStayTogether) {
  std::string text = "user,v,fold\n";
  for (int row = 0; row < 3000; ++row) {
    text += "u" + std::to_string(row % 100) + "," + std::to_string(row % 100) + (row % 7 == 0 ? ",test\n" : ",train\n");
  }
  TableOptions wanted = options({put("a.csv", text)});
  wanted.features = {"v"};
  wanted.split = {.validation = 0.3, .column = "user"};
  wanted.part = TablePart::kValidation;
  std::map<float, int> counts;
  for (const Row& row : rows_of(TableSource(wanted))) {
    ++counts[row[0]];
  }
  EXPECT_GT(counts.size(), 10U);
  EXPECT_LT(counts.size(), 60U);
  for (const auto& [user, count] : counts) {
    EXPECT_EQ(count, 30);
  }
  wanted.split = {.column = "fold", .values = {"test"}};
  EXPECT_EQ(TableSource(wanted).items(), 429);
}

TEST_F(TableSourceTest, StatisticsAreOfTheTrainingRows) {
  std::string text = "x,same,kind,fold\n";
  for (int row = 0; row < 100; ++row) {
    text += std::to_string(row) + ",3,k" + std::to_string(row) + (row < 50 ? ",train\n" : ",test\n");
  }
  text += ",3,k,test\n";
  TableOptions wanted = options({put("a.csv", text)});
  wanted.features = {"x", "same", "kind"};
  wanted.categorical = {"kind"};
  wanted.split = {.column = "fold", .values = {"test"}};
  wanted.standardize = true;
  wanted.fill = TableFill::kMean;
  const TableSource source(wanted);
  EXPECT_DOUBLE_EQ(source.columns()[0].mean, 24.5);
  EXPECT_DOUBLE_EQ(source.columns()[0].deviation, std::sqrt((50.0 * 50 - 1) / 12));
  const Row last = row_of(source, 99);
  EXPECT_FLOAT_EQ(last[0], static_cast<float>((99 - 24.5) / std::sqrt((50.0 * 50 - 1) / 12)));
  EXPECT_EQ(last[1], 0);   // a constant column
  EXPECT_EQ(last[2], 99);  // an index stays an index
  EXPECT_EQ(row_of(source, 100)[0], 0);
}

TEST_F(TableSourceTest, AColumnThatFloatsCannotTellApartIsNotStandardised) {
  TableOptions wanted = options({put("a.csv", "time,x\n1700000001,1000001\n1700000021,1000200\n")});
  EXPECT_EQ(TableSource(wanted).items(), 2);
  wanted.standardize = true;
  try {
    const TableSource source(wanted);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_EQ(error.subject(), "table column time");
  }
  wanted.features = {"x"};
  const TableSource source(wanted);
  EXPECT_NEAR(row_of(source, 0)[0], -1, 1e-3);
  EXPECT_NEAR(row_of(source, 1)[0], 1, 1e-3);
}

TEST_F(TableSourceTest, BatchesAreTheSameForAnyWorkersRanksAndStart) {
  TableOptions wanted = options({put("a.csv", large_table(5000))});
  wanted.targets = {"noise"};
  const TableSource source(wanted);
  const auto numbers = [&](LoaderOptions loading, int batches) {
    Loader loader(source, loading);
    Row all;
    for (int i = 0; i < batches; ++i) {
      const Batch batch = loader.next();
      const auto* features = reinterpret_cast<const float*>(batch.field(0));
      const auto* targets = reinterpret_cast<const float*>(batch.field(1));
      for (std::int64_t k = 0; k < batch.samples(); ++k) {
        EXPECT_EQ(row_of(source, static_cast<std::int64_t>(features[k]))[1], targets[k]);
        all.push_back(features[k]);
      }
    }
    return all;
  };
  const Row alone = numbers({.batch = 50, .workers = 0, .seed = 5}, 200);
  EXPECT_EQ(numbers({.batch = 50, .workers = 3, .seed = 5}, 200), alone);
  EXPECT_EQ(numbers({.batch = 50, .workers = 2, .seed = 5, .start_sample = 5050}, 99),
            Row(alone.begin() + 5050, alone.end()));
  const Row even = numbers({.batch = 25, .workers = 2, .seed = 5, .rank = 0, .world = 2}, 200);
  const Row odd = numbers({.batch = 25, .workers = 2, .seed = 5, .rank = 1, .world = 2}, 200);
  for (std::size_t i = 0; i < even.size(); ++i) {
    ASSERT_EQ(even[i], alone[2 * i]);
    ASSERT_EQ(odd[i], alone[2 * i + 1]);
  }
}

}  // namespace
}  // namespace unidle::data
