#include "unidle/record/listing.h"

#include <gmock/gmock.h>

#include <chrono>

#include "unidle/base/clock.h"
#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/testing/thrown.h"
#include "unidle/record/record.h"
#include "unidle/record/testing/sample_record.h"

namespace unidle::record {
namespace {

namespace fs = std::filesystem;
using unidle::testing::code_of;

class Listing : public ::testing::Test {
 protected:
  fs::path make(const std::string& name, std::string_view outcome, bool ended = true) {
    const fs::path path = folder_.path() / name;
    Writer writer(path);
    writer.set_meta(meta::kStartedUtc, "2026-11-01T12:00:00Z");
    writer.set_meta(meta::kCommand, {"python", "train.py"});
    writer.set_meta(meta::kStartNs, 5'000'000'000);
    if (ended) {
      writer.set_meta(meta::kEndNs, 7'000'000'000);
      writer.set_meta(meta::kOutcome, outcome);
    }
    return path;
  }
  /// Makes the record look as if nobody had written to it for an hour.
  static void age(const fs::path& path) {
    fs::last_write_time(path / "record.db", fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  const RunSummary& of(const std::vector<RunSummary>& runs, std::string_view name) {
    return *std::find_if(runs.begin(), runs.end(), [&](const RunSummary& run) { return run.name == name; });
  }

  TemporaryFolder folder_;
};

TEST_F(Listing, TellsWhatBecameOfEachRun) {
  make("20261101-120000-good", "completed");
  make("20261101-130000-bad", "failed");
  make("20261101-140000-live", "", false);
  age(make("20261101-150000-cut", "", false));
  make_folders(folder_.path() / "20261101-160000-none");
  fs::create_directory_symlink("20261101-120000-good", folder_.path() / "latest");

  const std::vector<RunSummary> runs = list_runs(folder_.path());
  ASSERT_EQ(runs.size(), 5U);
  EXPECT_EQ(runs.front().name, "20261101-160000-none");
  EXPECT_EQ(of(runs, "20261101-120000-good").seconds, 2.0);
  EXPECT_EQ(of(runs, "20261101-120000-good").command, (nlohmann::json{"python", "train.py"}));
  EXPECT_GT(of(runs, "20261101-120000-good").bytes, 4096U);
  EXPECT_EQ(of(runs, "20261101-140000-live").outcome, "running");
  EXPECT_EQ(of(runs, "20261101-150000-cut").outcome, "unknown");
  EXPECT_THAT(of(runs, "20261101-160000-none").error, ::testing::HasSubstr("is not an unidle record"));
  std::vector<std::string> bad;
  for (const RunSummary& run : runs) {
    if (is_bad(run)) {
      bad.push_back(run.name.substr(16));
    }
  }
  EXPECT_THAT(bad, ::testing::ElementsAre("none", "cut", "bad"));
  EXPECT_TRUE(list_runs(folder_.path() / "nothing").empty());
}

TEST_F(Listing, ASearchHasWhatItFound) {
  const auto search = [&](const std::string& name, bool shown, const std::string& conclusion) {
    Writer writer(folder_.path() / name);
    writer.set_meta(meta::kKind, meta::kSearch);
    writer.set_meta("conclusion", conclusion);
    writer.set_meta("verification", {{"shown", shown}, {"ratio", 1.69}});
    writer.set_meta("trials", {{{"seconds", 12.5}}, {{"seconds", 10}}});
    writer.set_meta("program", {{"command", {"python", "train.py"}}});
  };
  search("a-fix", true, "1.69x as fast as before (95 % interval 1.07 to 2.50, 3 pairs)");
  search("b-fix", false, "the search is inconclusive: 2 pairs gave 2.02x and 1.41x");
  search("c-fix", false, "nothing to gain: no change was faster than the program as it is");
  {
    Writer damaged(folder_.path() / "d-fix");
    damaged.set_meta(meta::kKind, meta::kSearch);
    damaged.set_meta("verification", {{"shown", "yes"}, {"ratio", "much"}});
    damaged.set_meta("trials", {1, {{"seconds", "long"}}});
  }

  const std::vector<RunSummary> runs = list_runs(folder_.path());
  ASSERT_EQ(runs.size(), 4U);
  const RunSummary& proven = of(runs, "a-fix");
  EXPECT_EQ(proven.search.value().gain, 1.69);
  EXPECT_EQ(proven.seconds, 22.5);
  EXPECT_EQ(proven.command, (nlohmann::json{"python", "train.py"}));
  EXPECT_FALSE(of(runs, "b-fix").search.value().gain);
  EXPECT_FALSE(of(runs, "b-fix").search.value().nothing_to_gain);
  EXPECT_TRUE(of(runs, "c-fix").search.value().nothing_to_gain);
  EXPECT_FALSE(of(runs, "d-fix").search.value().gain);
  EXPECT_TRUE(std::ranges::none_of(runs, is_bad)) << "an inconclusive search did not fail";
}

TEST(RunFilter, AdmitsByTimeOutcomeAndOwner) {
  RunSummary run;
  run.name = "20261101-090000-train";  // a clock in local time
  run.started_utc = "2026-11-01T12:00:00Z";
  run.outcome = "completed";
  run.user = "ada";
  const std::int64_t began_ns = run.started_ns().value();
  const auto admits = [&run](auto set) {
    RunFilter filter;
    set(filter);
    return filter.chooses() && filter.admits(run);
  };
  EXPECT_FALSE(RunFilter().chooses());
  EXPECT_TRUE(RunFilter().admits(run));
  EXPECT_TRUE(admits([&](RunFilter& filter) { filter.since_ns = began_ns; }));
  EXPECT_FALSE(admits([&](RunFilter& filter) { filter.since_ns = began_ns + 1; }));
  EXPECT_TRUE(admits([&](RunFilter& filter) { filter.before_ns = began_ns + 1; }));
  EXPECT_FALSE(admits([&](RunFilter& filter) { filter.before_ns = began_ns; }));
  EXPECT_FALSE(admits([](RunFilter& filter) { filter.bad = true; }));
  EXPECT_FALSE(admits([](RunFilter& filter) { filter.user = "bob"; }));
  EXPECT_TRUE(admits([](RunFilter& filter) { filter.user = "ada"; }));

  run.started_utc.clear();
  EXPECT_EQ(run.started_ns(), began_ns - std::int64_t{3} * 3600 * kNsPerSecond) << "by its name";
  run.name = "mine";
  EXPECT_FALSE(run.started_ns());
  EXPECT_FALSE(admits([](RunFilter& filter) { filter.since_ns = 0; })) << "nobody knows when it began";
}

TEST_F(Listing, ManyAreReadByThreads) {
  for (int i = 0; i < 200; ++i) {
    make("run" + std::to_string(i), "completed");
  }
  for (const RunSummary& run : list_runs(folder_.path())) {
    EXPECT_EQ(run.outcome, "completed") << run.error;
  }
}

TEST_F(Listing, OnlyRecordsThatNobodyWritesAreRemoved) {
  const fs::path ended = make("ended", "completed");
  const fs::path live = make("live", "", false);
  const fs::path mine = folder_.path() / "mine";
  make_folders(mine);
  write_file_atomic(mine / "notes.txt", "of the user's");
  fs::create_directory_symlink("ended", folder_.path() / "link");
  write_file_atomic(ended / "report.html", "what unidle report made");
  write_file_atomic(ended / kPatch, "what a search found");
  remove_run(ended);
  EXPECT_FALSE(fs::exists(ended));
  EXPECT_EQ(code_of([&] { remove_run(live); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { remove_run(mine); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { remove_run(folder_.path() / "link"); }), ErrorCode::kUsage);
  EXPECT_TRUE(fs::exists(mine / "notes.txt"));
  age(live);
  remove_run(live);
  EXPECT_FALSE(fs::exists(live));
}

TEST_F(Listing, WhatIsNotOfTheRecordStays) {
  const fs::path project = make("project", "completed");  // unidle run -o .
  write_file_atomic(project / "train.py", "of the user's");
  write_file_atomic(project / "report.html", "of the user's, perhaps");
  write_file_atomic(project / ".record.db", "of the user's: a recorder's file has more behind the name");
  write_file_atomic(project / ".record.db.7", "of a recorder that was killed while it began");
  remove_run(project);
  EXPECT_FALSE(fs::exists(project / "record.db"));
  EXPECT_TRUE(fs::exists(project / "report.html"));
  EXPECT_TRUE(fs::exists(project / "train.py"));
  EXPECT_TRUE(fs::exists(project / ".record.db"));
  EXPECT_FALSE(fs::exists(project / ".record.db.7"));
  write_file_atomic(project / "record.db", "notes of mine");
  EXPECT_EQ(code_of([&] { remove_run(project); }), ErrorCode::kUsage);
  EXPECT_TRUE(fs::exists(project / "record.db"));
}

TEST_F(Listing, TheLinkToTheLatestFollows) {
  const fs::path link = folder_.path() / "latest";
  make("1", "completed");
  make("2", "completed");
  fs::create_directory_symlink("2", link);
  remove_run(folder_.path() / "2");
  repair_latest(folder_.path());
  EXPECT_EQ(fs::read_symlink(link), "1");
  remove_run(folder_.path() / "1");
  repair_latest(folder_.path());
  EXPECT_FALSE(fs::is_symlink(fs::symlink_status(link)));
}

TEST_F(Listing, AnExportedRecordIsOneFileThatReadsTheSame) {
  testing::write_sample(folder_.path() / "a");
  const fs::path file = folder_.path() / "a b.db";
  export_run(folder_.path() / "a", file);
  const Reader before(folder_.path() / "a");
  const Reader after(file);
  EXPECT_EQ(after.all_meta(), before.all_meta());
  EXPECT_EQ(after.steps().size(), before.steps().size());
  EXPECT_EQ(fs::status(file).permissions() & fs::perms::all, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(code_of([&] { export_run(folder_.path() / "a", file); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { export_run(folder_.path() / "a", folder_.path() / "no/x.db"); }), ErrorCode::kIo);
  EXPECT_EQ(code_of([&] { export_run(folder_.path() / "no", folder_.path() / "x.db"); }), ErrorCode::kInput);
  EXPECT_FALSE(fs::exists(folder_.path() / "x.db"));
}

}  // namespace
}  // namespace unidle::record
