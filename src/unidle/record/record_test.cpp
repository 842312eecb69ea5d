#include "unidle/record/record.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/record/detail/schema.h"
#include "unidle/record/sqlite.h"

namespace unidle::record {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ErrorCode code_of(const std::function<void()>& action, std::string* subject = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (subject != nullptr) {
      *subject = error.subject();
    }
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kInternal;
}

/// A record with a few hundred steps in it, finished.
void write_sample(const fs::path& folder, int steps = 500) {
  Writer writer(folder);
  writer.set_meta(meta::kCommand, {"python", "train.py"});
  for (int i = 0; i < steps; ++i) {
    Step step;
    step.index = i;
    step.t_ns = i * 1000;
    step.loss = 1.0 / (1 + i);
    writer.add(step);
  }
}

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

TEST(Record, CommitsByItself) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    Writer writer(folder.path());
    for (;;) {
      writer.add(Step{});
      ::usleep(1000);
    }
  }
  std::size_t seen = 0;
  for (int tries = 0; seen == 0 && tries < 3000; ++tries) {
    ::usleep(10'000);
    try {
      seen = Reader(folder.path()).steps().size();
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kInput);  // not made yet
    }
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_GT(seen, 0U);
}

/// Others may read records while it lives.
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
  Database(folder.path() / "r/record.db", (folder.path() / "r/record.db").string(), SQLITE_OPEN_READWRITE,
           ErrorCode::kIo)
      .execute("PRAGMA journal_mode=WAL");
  ASSERT_EQ(::seteuid(65534), 0);
  std::size_t seen = 0;
  EXPECT_NO_THROW(seen = Reader(folder.path() / "r").steps().size());
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(seen, 3U);
}

/// Reads everything there is.
void read_all(const fs::path& path) {
  const Reader reader(path);
  reader.steps();
  reader.spans();
  reader.sample_work();
  reader.metric_names();
  reader.settings();
  reader.notes();
  reader.all_series();
  reader.meta(meta::kCommand);
  reader.output_tail("stdout");
}

TEST(Record, TruncatedAnywhereIsInputError) {
  const TemporaryFolder folder;
  write_sample(folder.path() / "whole");
  const std::string bytes = read_file(folder.path() / "whole/record.db");
  ASSERT_GT(bytes.size(), 12U * 4096);
  for (std::size_t keep = 0; keep < bytes.size(); keep += 1500) {
    const fs::path path = folder.path() / "cut.db";
    std::ofstream(path, std::ios::binary) << bytes.substr(0, keep);
    std::string subject;
    EXPECT_EQ(code_of([&] { read_all(path); }, &subject), ErrorCode::kInput) << keep;
    EXPECT_THAT(subject, HasSubstr("cut.db"));
  }
}

TEST(Record, DamagedBytesNeverDoWorseThanAnInputError) {
  const TemporaryFolder folder;
  write_sample(folder.path() / "whole");
  const std::string bytes = read_file(folder.path() / "whole/record.db");
  int refused = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 211) {
    std::string damaged = bytes;
    damaged.replace(at, 16, std::string("\xff\x00\x80\x7f\xff\xff\xff\xff\x01\x00\x00\x00\xaa\x55\xaa\x55", 16));
    const fs::path path = folder.path() / "damaged.db";
    std::ofstream(path, std::ios::binary) << damaged.substr(0, bytes.size());
    try {
      read_all(path);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), ErrorCode::kInput) << at;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(Record, WhatIsNoRecordIsInputError) {
  const TemporaryFolder folder;
  std::string subject;
  EXPECT_EQ(code_of([&] { Reader(folder.path() / "none"); }, &subject), ErrorCode::kInput);
  EXPECT_THAT(subject, HasSubstr("none"));
  EXPECT_EQ(code_of([&] { Reader(folder.path()); }), ErrorCode::kInput);
  std::ofstream(folder.path() / "text") << std::string(10'000, 'x');
  EXPECT_EQ(code_of([&] { Reader(folder.path() / "text"); }), ErrorCode::kInput);
  const fs::path foreign = folder.path() / "foreign.db";
  Database(foreign, foreign.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ErrorCode::kIo)
      .execute("CREATE TABLE meta (key, value)");
  EXPECT_EQ(code_of([&] { Reader{foreign}; }), ErrorCode::kInput);
}

TEST(Record, ADeepValueIsInputError) {
  const TemporaryFolder folder;
  write_sample(folder.path());
  const fs::path path = folder.path() / "record.db";
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  Database(path, path.string(), SQLITE_OPEN_READWRITE, ErrorCode::kIo)
      .execute(("INSERT INTO notes VALUES (1, 0, '" + deep + "'); INSERT OR REPLACE INTO meta VALUES ('host', '" +
                deep + "')")
                   .c_str());
  const Reader reader(path);
  EXPECT_EQ(code_of([&] { reader.notes(); }), ErrorCode::kInput);
  EXPECT_EQ(code_of([&] { reader.meta("host"); }), ErrorCode::kInput);
}

TEST(Record, NewerSchemaIsRefusedAndNamed) {
  const TemporaryFolder folder;
  write_sample(folder.path());
  const fs::path path = folder.path() / "record.db";
  Database(path, path.string(), SQLITE_OPEN_READWRITE, ErrorCode::kIo).execute("PRAGMA user_version=99");
  try {
    const Reader reader(path);
    FAIL() << "a newer schema was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_THAT(error.message(), HasSubstr("99"));
  }
}

TEST(Record, OddPathsWork) {
  const TemporaryFolder folder;
  const fs::path odd = folder.path() / "50% of a?b#c d";
  write_sample(odd, 2);
  EXPECT_EQ(Reader(odd).steps().size(), 2U);
}

TEST(Record, UnwritableFolderIsIoError) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  std::string subject;
  EXPECT_EQ(code_of([&] { Writer(folder.path() / "file/record"); }, &subject), ErrorCode::kIo);
  EXPECT_THAT(subject, HasSubstr("file/record"));
}

/// In a forked child whose files cannot grow past a limit: writes until that fails. The exit code says what came.
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

// The documented tables and columns are those of the schema.
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
  Database db(folder.path(), (folder.path() / "record.db").string(), SQLITE_OPEN_READONLY, ErrorCode::kInput);
  Statement tables(db, "SELECT name FROM sqlite_schema WHERE type='table' ORDER BY rowid");
  while (tables.step()) {
    const std::string table = tables.text(0);
    real.push_back(table);
    Statement columns(db, "SELECT name FROM pragma_table_info('" + table + "')");
    while (columns.step()) {
      real.push_back(table + "." + columns.text(0));
    }
  }
  EXPECT_EQ(documented, real);
  EXPECT_THAT(text, HasSubstr("`user_version` = " + std::to_string(kSchemaVersion)));
}

}  // namespace
}  // namespace unidle::record
