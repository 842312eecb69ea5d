#include "unidle/record/record.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <sstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/sqlite.h"
#include "unidle/base/testing/fake_clock.h"
#include "unidle/base/testing/thrown.h"
#include "unidle/record/detail/schema.h"
#include "unidle/record/testing/sample_record.h"

namespace unidle::record {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::write_sample;
using unidle::testing::code_of;

TEST(Record, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  {
    Writer writer(folder.path() / "a");
    writer.set_meta(meta::kExit, {{"code", 3}, {"signal", 0}});
    writer.set_meta(meta::kExit, {{"code", 4}, {"signal", 0}});
    Step whole{7, 1, 100, 50, 32, 4, 1, 2, 3, 4, 5, 6, 2, 0.5, 96};
    Step bare;
    bare.index = 2;
    writer.add(whole);
    writer.add(bare);
    writer.add(Span{"validate", 7, 10, 20, 30});
    writer.add(SampleWork{8, 1, 1'000'000'000, 10, 11, 12, 13});
    writer.add(Metric{"psnr", 5, 6, 7, 31.5});
    writer.add(Setting{"loader.workers", "4", "effective", ""});
    writer.add(Setting{"precision.amp", "true", "configured", "a.yaml:3"});
    writer.add(Note{9, 7, {{"type", "exception"}, {"text", "änd"}}});
    writer.set_output_tail("stdout", std::string_view("a\0b\xff", 4));
    const Series cpu{"tree.cpu", "cores", ""};
    const Series gpu{"gpu.power", "W", "gpu0"};
    const std::int64_t cpu_id = writer.series(cpu);
    EXPECT_NE(writer.series(gpu), cpu_id);
    EXPECT_EQ(writer.series(cpu), cpu_id);
    writer.add_point(cpu_id, {2, 1.5});
    writer.add_point(cpu_id, {1, 0.5});
  }

  const Reader reader(folder.path() / "a");
  EXPECT_EQ(reader.folder(), folder.path() / "a");
  EXPECT_EQ(reader.meta(meta::kExit)->at("code"), 4);
  EXPECT_FALSE(reader.meta("nothing").has_value());
  const std::vector<Step> steps = reader.steps();
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].process, 7);
  EXPECT_EQ(steps[0].micro_batches, 4);
  EXPECT_EQ(steps[0].input_ns, 1);
  EXPECT_EQ(steps[0].sync_ns, 6);
  EXPECT_EQ(steps[0].syncs, 2);
  EXPECT_EQ(steps[0].loss, 0.5);
  EXPECT_EQ(steps[0].samples_before, 96);
  EXPECT_EQ(steps[1].index, 2);
  ASSERT_EQ(reader.last_steps(1).size(), 1U);
  EXPECT_EQ(reader.last_steps(1)[0].index, 2);
  EXPECT_EQ(reader.last_steps(9).front().index, 1) << "in order";
  EXPECT_FALSE(steps[1].input_ns.has_value());
  EXPECT_FALSE(steps[1].loss.has_value());
  ASSERT_EQ(reader.spans().size(), 1U);
  EXPECT_EQ(reader.spans()[0].kind, "validate");
  EXPECT_EQ(reader.spans()[0].samples, 30);
  ASSERT_EQ(reader.sample_work().size(), 1U);
  EXPECT_EQ(reader.sample_work()[0].slowest_ns, 12);
  EXPECT_THAT(reader.metric_names(), ElementsAre("psnr"));
  EXPECT_EQ(reader.metrics("psnr").at(0).value, 31.5);
  EXPECT_TRUE(reader.metrics("loss").empty());
  ASSERT_EQ(reader.settings().size(), 2U);
  EXPECT_EQ(reader.settings()[1].location, "a.yaml:3");
  EXPECT_EQ(reader.notes().at(0).body.at("text"), "änd");
  EXPECT_EQ(reader.output_tail("stdout"), std::string("a\0b\xff", 4));
  EXPECT_EQ(reader.output_tail("stderr"), "");
  ASSERT_EQ(reader.all_series().size(), 2U);
  const std::vector<Point> points = reader.points({"tree.cpu", "cores", ""});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].value, 0.5);
  EXPECT_TRUE(reader.points({"gpu.power", "W", "gpu0"}).empty());
}

TEST(Record, MayHaveAnyPath) {
  const TemporaryFolder folder;
  const fs::path two_slashes = "/" + (folder.path() / "r").string();
  testing::write_sample(two_slashes, 3);
  EXPECT_EQ(Reader(two_slashes).steps().size(), 3U);

  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  testing::write_sample("file:x", 3);
  EXPECT_EQ(Reader("file:x").steps().size(), 3U);
  fs::current_path(before);
}

TEST(Record, KeepsValuesThatAreNoNumbers) {
  const TemporaryFolder folder;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  {
    Writer writer(folder.path());
    Step step;
    step.loss = nan;
    writer.add(step);
    step.loss = infinity;
    writer.add(step);
    writer.add(Metric{"loss", 1, 1, 1, nan});
    writer.add_point(writer.series({"a", "", ""}), {1, nan});
  }
  const Reader reader(folder.path());
  ASSERT_EQ(reader.steps().size(), 2U);
  ASSERT_TRUE(reader.steps()[0].loss.has_value());
  EXPECT_TRUE(std::isnan(*reader.steps()[0].loss));
  EXPECT_EQ(reader.steps()[1].loss, infinity);
  EXPECT_TRUE(std::isnan(reader.metrics("loss").at(0).value));
  EXPECT_TRUE(std::isnan(reader.points({"a", "", ""}).at(0).value));
}

TEST(Record, TextThatIsNoUtf8IsKept) {
  const TemporaryFolder folder;
  {
    Writer writer(folder.path());
    writer.set_meta(meta::kCommand, {"\xff\xfe"});
  }
  EXPECT_TRUE(Reader(folder.path()).meta(meta::kCommand).has_value());
}

TEST(Record, KeepsNoSecret) {
  const TemporaryFolder folder;
  const std::string key = "0123456789abcdef0123456789abcdef01234567";
  {
    Writer writer(folder.path());
    writer.set_meta(meta::kCommand, {"env", "HF_TOKEN=" + key, "python", "train.py", "--wandb-key", key, "--lr", "1"});
    writer.add(Note{1, 2, {{"type", "exception"}, {"text", "api_key=\"" + key + "\""}, {"password", key}, {"n", 3}}});
    writer.add(Setting{"x", "https://me:" + key + "@host", "configured", "a.yaml:1"});
    writer.set_output_tail("stdout", "WANDB_API_KEY=" + key + "\nloss 0.5\n");
  }
  EXPECT_EQ(read_file(folder.path() / "record.db").find(key), std::string::npos);
  const Reader reader(folder.path());
  EXPECT_EQ(reader.meta(meta::kCommand)->dump(),
            R"(["env","HF_TOKEN=****","python","train.py","--wandb-key","****","--lr","1"])");
  EXPECT_EQ(reader.notes().at(0).body.at("text"), "api_key=\"****\"");
  EXPECT_EQ(reader.notes().at(0).body.at("n"), 3);
}

TEST(Record, IsItsUsersAloneUnlessItIsShared) {
  const TemporaryFolder folder;
  const auto modes = [&](const char* name) {
    { const Writer writer(folder.path() / name / "record"); }
    struct stat of_folder {
    }, of_file{};
    ::stat((folder.path() / name / "record").c_str(), &of_folder);
    ::stat((folder.path() / name / "record/record.db").c_str(), &of_file);
    return std::pair(of_folder.st_mode & 0777U, of_file.st_mode & 0777U);
  };
  const mode_t before = ::umask(027);
  EXPECT_EQ(modes("own"), std::pair(0700U, 0600U));
  ::setenv("UNIDLE_SHARED_RECORDS", "1", 1);
  EXPECT_EQ(modes("shared"), std::pair(0750U, 0640U));
  ::unsetenv("UNIDLE_SHARED_RECORDS");
  ::umask(before);
}

TEST(Record, IsReadWhileItIsWritten) {
  const TemporaryFolder folder;
  Writer writer(folder.path());
  writer.add(Step{});
  EXPECT_EQ(Reader(folder.path()).steps().size(), 0U);
  writer.flush();
  const Reader reader(folder.path() / "record.db");
  EXPECT_EQ(reader.steps().size(), 1U);
  writer.add(Step{});
  writer.flush();
  EXPECT_EQ(reader.steps().size(), 2U);
}

TEST(Record, CommitsByItselfOnceASecond) {
  const TemporaryFolder folder;
  unidle::testing::FakeClock clock;
  Writer writer(folder.path(), Begin::kNew, clock);
  const Reader reader(folder.path());
  writer.add(Step{});
  clock.advance(kNsPerSecond - 1);
  writer.add(Step{});
  EXPECT_EQ(reader.steps().size(), 0U);
  clock.advance(1);
  writer.add(Step{});
  EXPECT_EQ(reader.steps().size(), 3U);
  writer.add(Step{});
  EXPECT_EQ(reader.steps().size(), 3U) << "another second begins";
}

TEST(Record, FinishedIsOneFile) {
  const TemporaryFolder folder;
  write_sample(folder.path());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(Record, SecondWriterIsRefused) {
  const TemporaryFolder folder;
  write_sample(folder.path());
  EXPECT_EQ(code_of([&] { Writer(folder.path()); }), ErrorCode::kUsage);
  EXPECT_EQ(Reader(folder.path()).steps().size(), 500U);
}

TEST(Record, WhatAKilledProcessLeftIsRemoved) {
  const TemporaryFolder folder;
  const fs::path old = folder.path() / ".record.db.1";
  const fs::path young = folder.path() / ".record.db.2-wal";
  write_file_atomic(old, "");
  write_file_atomic(young, "");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
  const Writer writer(folder.path());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));  // a writer may be creating it
}

TEST(Record, OddPathsWork) {
  const TemporaryFolder folder;
  const fs::path odd = folder.path() / "50% of a?b#c d";
  write_sample(odd, 2);
  EXPECT_EQ(Reader(odd).steps().size(), 2U);
}

// The documentation lists exactly the tables and columns of the schema.
TEST(Record, DocumentationNamesEveryTableAndColumn) {
  const fs::path document = fs::path(UNIDLE_SOURCE_DIR) / "docs/record-format.md";
  const std::string text = read_file(document);
  std::vector<std::string> documented;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## Table `")) {
      documented.push_back(line.substr(10, line.rfind('`') - 10));
    } else if (!documented.empty() && line.starts_with("| `")) {
      documented.push_back(documented.back().substr(0, documented.back().find('.')) + "." +
                           line.substr(3, line.find('`', 3) - 3));
    }
  }
  std::vector<std::string> real;
  const TemporaryFolder folder;
  write_sample(folder.path(), 1);
  sqlite::Database db(folder.path(), (folder.path() / "record.db").string(), SQLITE_OPEN_READONLY, ErrorCode::kInput);
  sqlite::Statement tables(db, "SELECT name FROM sqlite_schema WHERE type='table' ORDER BY rowid");
  while (tables.step()) {
    const std::string table = tables.text(0);
    real.push_back(table);
    sqlite::Statement columns(db, "SELECT name FROM pragma_table_info('" + table + "')");
    while (columns.step()) {
      real.push_back(table + "." + columns.text(0));
    }
  }
  EXPECT_EQ(documented, real);
  EXPECT_THAT(text, HasSubstr("`user_version` = " + std::to_string(kSchemaVersion)));
}

}  // namespace
}  // namespace unidle::record
