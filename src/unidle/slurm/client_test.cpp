#include "unidle/slurm/client.h"

#include <gmock/gmock.h>

#include <deque>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/slurm/accounting.h"

namespace unidle::slurm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

/// Returns the given answers in order, and keeps the commands.
struct Slurm {
  Client client{[this](const Command& command) {
    asked.push_back(command.argv);
    Finished answer = answers.empty() ? Finished{} : answers.front();
    if (!answers.empty()) {
      answers.pop_front();
    }
    return answer;
  }};
  std::deque<Finished> answers;
  std::vector<std::vector<std::string>> asked;
};

Finished said(std::string out) { return {{0, 0}, std::move(out), "", false}; }
Finished refused(std::string err, int code = 1) { return {{code, 0}, "", std::move(err), false}; }

std::string thrown(const std::function<void()>& work, ErrorCode code) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Submit, GivesTheId) {
  Slurm slurm;
  slurm.answers = {said("4711\n"), said("4712;cluster\n")};
  EXPECT_EQ(slurm.client.submit("/tmp/job.sh", "/home/ada"), "4711");
  EXPECT_EQ(slurm.client.submit("/tmp/job.sh", "/home/ada"), "4712");
  EXPECT_THAT(slurm.asked[0], ElementsAre("sbatch", "--parsable", "--chdir=/home/ada", "/tmp/job.sh"));
}

TEST(Submit, TellsWhySlurmRefuses) {
  Slurm slurm;
  slurm.answers = {refused("sbatch: error: Batch job submission failed: Invalid partition name specified\n")};
  EXPECT_THAT(thrown([&] { slurm.client.submit("a", "b"); }, ErrorCode::kChild),
              HasSubstr("Invalid partition name specified"));
}

TEST(Slurm, MayBeMissing) {
  Client client(
      [](const Command& command) -> Finished { throw Error(ErrorCode::kInput, command.argv[0], "cannot be found"); });
  EXPECT_THAT(thrown([&] { client.find("1"); }, ErrorCode::kMissing), HasSubstr("does not belong to a Slurm cluster"));
}

TEST(Slurm, MayBeDownOrHang) {
  Slurm slurm;
  slurm.answers = {refused("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"),
                   {{0, 15}, "", "", true}};
  thrown([&] { slurm.client.find("1"); }, ErrorCode::kMissing);
  EXPECT_THAT(thrown([&] { slurm.client.find("1"); }, ErrorCode::kMissing), HasSubstr("did not answer"));
}

TEST(Find, RefusesWhatIsNoId) {
  Slurm slurm;
  for (const char* id : {"", "x", "1;rm", "--help", "1_", "_1", "12345678901"}) {
    thrown([&] { slurm.client.find(id); }, ErrorCode::kUsage);
  }
  EXPECT_THAT(slurm.asked, IsEmpty());
}

TEST(Find, AsksAccountingForWhatTheControllerForgot) {
  Slurm slurm;
  const std::string u(1, '\x1f');
  const auto line = [&](std::vector<std::string> columns) {
    std::string text;
    for (const std::string& column : columns) {
      text += (text.empty() ? "" : u) + column;
    }
    return text + "\n";
  };
  // Columns as sacct(1) has them: JobID JobName User Partition Account State Reason Submit Start End ElapsedRaw
  // Timelimit NNodes NCPUS AllocTRES TotalCPU MaxRSS ExitCode NodeList WorkDir Comment
  const std::string accounts =
      line({"9",
            "a|b",
            "ada",
            "main",
            "lab",
            "CANCELLED by 1000",
            "None",
            "2026-11-23T00:00:00",
            "2026-11-23T00:00:05",
            "2026-11-23T00:10:05",
            "600",
            "01:00:00",
            "1",
            "8",
            "billing=8,cpu=8,gres/gpu=2,mem=64G,node=1",
            "20:00.500",
            "",
            "0:15",
            "gpu01",
            "/home/ada",
            "unidle:/home/ada/results"}) +
      line({"9.batch", "batch", "",  "", "lab",       "CANCELLED", "",     "",      "", "", "600",
            "",        "1",     "8", "", "20:00.500", "2048000K",  "0:15", "gpu01", "", ""});
  slurm.answers = {refused("slurm_load_jobs error: Invalid job id specified\n"), said(accounts)};
  const std::vector<Job> jobs = slurm.client.find("9");
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].name, "a|b");
  EXPECT_EQ(jobs[0].state, "CANCELLED");
  EXPECT_EQ(jobs[0].gpus, 2);
  EXPECT_THAT(jobs[0].elapsed_s, Optional(600));
  EXPECT_THAT(jobs[0].cpu_time_s, Optional(1200.5));
  EXPECT_THAT(jobs[0].memory_bytes, Optional(64 * 0x1p30));
  EXPECT_THAT(jobs[0].peak_memory_bytes, Optional(2048000 * 1024.0));
  EXPECT_EQ(jobs[0].exit_signal, 15);
}

TEST(Find, KeepsWhyAccountingSaysNothing) {
  Slurm slurm;
  slurm.answers = {refused("slurm_load_jobs error: Invalid job id specified\n"),
                   refused("Slurm accounting storage is disabled\n")};
  EXPECT_THAT(slurm.client.find("9"), IsEmpty());
  EXPECT_EQ(slurm.client.accounting_problem(), "Slurm accounting storage is disabled");
}

TEST(OfUser, LeavesOthersOut) {
  Slurm slurm;
  slurm.answers = {
      said("JobId=1 JobName=a UserId=ada(1) JobState=RUNNING\n"
           "JobId=2 JobName=b UserId=bob(2) JobState=RUNNING\n")};
  const std::vector<Job> jobs = slurm.client.of_user("ada", 7);
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].id, "1");
}

/// A line of sacct for a job or a step, with the columns about memory.
struct AccountedStep {
  std::string id, start, end, nodes, peak, tasks;
};
std::string accounted(const std::vector<AccountedStep>& steps) {
  std::string text;
  for (const AccountedStep& step : steps) {
    std::vector<std::string> columns(22);
    columns[0] = step.id;
    columns[8] = step.start;
    columns[9] = step.end;
    columns[12] = step.nodes;
    columns[14] = step.id.find('.') == std::string::npos ? "cpu=64,mem=1T,node=" + step.nodes : "";
    columns[16] = step.peak;
    columns[21] = step.tasks;
    for (const std::string& column : columns) {
      text += column + "\x1f";
    }
    text.back() = '\n';
  }
  return text;
}

std::optional<double> gib(std::optional<double> bytes) { return bytes ? std::optional(*bytes / 0x1p30) : std::nullopt; }

TEST(Sacct, MemoryIsOfTheLargestTaskAndANodeHasSeveral) {
  // Four tasks on each of two nodes; the batch step runs at the same time, `extern` reports nothing.
  const auto jobs = parse_sacct(accounted({{"7", "T1", "T9", "2", "", ""},
                                           {"7.batch", "T1", "T9", "1", "1048576K", "1"},
                                           {"7.extern", "T1", "T9", "2", "0", "2"},
                                           {"7.0", "T2", "T8", "2", "20971520K", "8"},
                                           {"7.1", "T8", "T9", "1", "1024K", "1"}}));
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_THAT(gib(jobs[0].peak_memory_bytes), Optional(81.0));
  EXPECT_EQ(jobs[0].tasks_per_node, 4);
}

TEST(Sacct, StepsCountTogetherWhileTheyRunTogether) {
  const auto peak = [](const std::vector<AccountedStep>& steps) {
    return gib(parse_sacct(accounted(steps)).front().peak_memory_bytes);
  };
  const AccountedStep job{"7", "T1", "T9", "1", "", ""};
  EXPECT_THAT(peak({job, {"7.0", "T1", "T3", "1", "4G", "1"}, {"7.1", "T3", "T5", "1", "6G", "1"}}), Optional(6.0));
  EXPECT_THAT(peak({job, {"7.0", "T1", "T4", "1", "4G", "1"}, {"7.1", "T3", "T5", "1", "6G", "1"}}), Optional(10.0));
  EXPECT_THAT(peak({job, {"7.0", "T1", "Unknown", "1", "4G", "1"}, {"7.1", "T3", "T3", "1", "6G", "1"}}),
              Optional(10.0));
}

TEST(Sacct, ANumberWithoutAUnitIsOfBytes) {
  const auto jobs =
      parse_sacct(accounted({{"7", "T1", "T9", "1", "", ""}, {"7.batch", "T1", "T9", "1", "9961472000", "1"}}));
  EXPECT_EQ(jobs.front().peak_memory_bytes, 9961472000.0);
}

TEST(Sacct, AFigureOfZeroIsNone) {
  const auto jobs = parse_sacct(accounted({{"7", "T1", "T9", "1", "", ""}, {"7.batch", "T1", "T9", "1", "0", "1"}}));
  EXPECT_FALSE(jobs.front().peak_memory_bytes);
}

TEST(Sacct, PartsOfAHeterogeneousJobAreJobsOfTheirOwn) {
  const auto jobs = parse_sacct(accounted({{"7+0", "T1", "T9", "1", "", ""},
                                           {"7+0.batch", "T1", "T9", "1", "1G", "1"},
                                           {"7+1", "T1", "T9", "4", "", ""},
                                           {"7+1.0", "T1", "T9", "4", "9G", "4"},
                                           {"7+0.0", "T1", "T9", "1", "2G", "1"}}));
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_THAT(gib(jobs[0].peak_memory_bytes), Optional(3.0));
  EXPECT_THAT(gib(jobs[1].peak_memory_bytes), Optional(9.0));
  EXPECT_EQ(jobs[0].id_of_files(), "7");
  EXPECT_EQ(jobs[1].id_of_files(), "");
}

TEST(Find, TheControllerNamesPartsOfAHeterogeneousJobByTheirOffset) {
  Slurm slurm;
  slurm.answers = {
      said("JobId=7 HetJobId=7 HetJobOffset=0 HetJobIdSet=7-8 JobName=a JobState=RUNNING NumNodes=1\n"
           "JobId=8 HetJobId=7 HetJobOffset=1 HetJobIdSet=7-8 JobName=a JobState=RUNNING NumNodes=2 "
           "NumTasks=8\n"),
      said(accounted({{"7+1", "T1", "Unknown", "2", "", ""}, {"7+1.0", "T1", "Unknown", "2", "9G", "8"}}))};
  const std::vector<Job> jobs = slurm.client.find("7");
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_EQ(jobs[0].id, "7+0");
  EXPECT_EQ(jobs[1].id, "7+1");
  EXPECT_EQ(jobs[1].tasks_per_node, 4);
  EXPECT_THAT(gib(jobs[1].peak_memory_bytes), Optional(36.0));
  slurm.answers = {said("JobId=8 HetJobId=7 HetJobOffset=1 JobState=RUNNING\n"), said("")};
  EXPECT_THAT(slurm.client.find("7+1"), SizeIs(1));
}

TEST(Sacct, OddLinesAreRead) {
  EXPECT_THAT(parse_sacct(""), IsEmpty());
  EXPECT_THAT(parse_sacct("1.batch\x1f\x1f\n"), IsEmpty());
  EXPECT_THAT(parse_sacct("1\n2\x1fx\n"), SizeIs(2));
}

TEST(Client, ARefusedJobLeavesNoFolder) {
  Slurm slurm;
  slurm.answers = {refused("sbatch: error: Batch job submission failed"), said("4711\n"), refused("sbatch: error: no")};
  const TemporaryFolder folder;
  const std::filesystem::path results = folder.path() / "results";
  thrown([&] { submit(slurm.client, "#!/bin/bash\n", results); }, ErrorCode::kChild);
  EXPECT_FALSE(std::filesystem::exists(results));
  EXPECT_EQ(submit(slurm.client, "#!/bin/bash\n", results), "4711");
  EXPECT_TRUE(std::filesystem::exists(results));
  thrown([&] { submit(slurm.client, "#!/bin/bash\n", results); }, ErrorCode::kChild);
  EXPECT_TRUE(std::filesystem::exists(results));  // it existed before
}

}  // namespace
}  // namespace unidle::slurm
