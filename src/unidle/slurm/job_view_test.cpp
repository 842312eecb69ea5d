#include "unidle/slurm/job_view.h"

#include <gmock/gmock.h>

#include <fstream>
#include <tuple>

#include "unidle/base/files.h"
#include "unidle/record/record.h"
#include "unidle/slurm/analysis.h"
#include "unidle/slurm/job_script.h"
#include "unidle/slurm/tables.h"

namespace unidle::slurm {
namespace {

namespace fs = std::filesystem;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

Job job() {
  Job job;
  job.id = "7";
  job.name = "train";
  job.state = "COMPLETED";
  job.elapsed_s = 7200;
  job.limit_s = 14400;
  job.nodes = 1;
  job.cpus = 8;
  job.gpus = 2;
  job.memory_bytes = 64 * 0x1p30;
  return job;
}

void make_record(const fs::path& folder, double gpu, double cpus, double memory) {
  record::Writer writer(folder);
  const auto add = [&](std::string_view name, const std::string& subject, double value) {
    const std::int64_t series = writer.series({std::string(name), "", subject});
    writer.add_point(series, {1, value});
    writer.add_point(series, {2, value});
  };
  add(record::series::kGpuUtil, "gpu0", gpu);
  add(record::series::kTreeCpu, "", cpus);
  add(record::series::kTreeMemory, "", memory);
  writer.flush();
}

class JobView : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(JobView, UseComesFromTheRecord) {
  make_record(folder_.path() / "unidle_7", 0.25, 2, 4 * 0x1p30);
  Job it = job();
  it.comment = comment_of(folder_.path());
  const JobFiles files = files_of(it, "elsewhere");
  ASSERT_THAT(files.records, SizeIs(1));
  const Use use = use_of(it, files);
  EXPECT_THAT(use.gpu, Optional(DoubleEq(0.25)));
  EXPECT_THAT(gpu_hours(it), Optional(DoubleEq(4)));
  EXPECT_THAT(wasted_gpu_hours(it, use), Optional(DoubleEq(3)));
  const std::vector<LineChange> lines = proposals({it, use, {}, {}}, std::nullopt);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].line, "--cpus-per-task=3");
  EXPECT_EQ(lines[1].line, "--mem=5G");
}

TEST_F(JobView, AJobThatWasKilledIsNotToHaveLessMemory) {
  Job it = job();
  it.peak_memory_bytes = 4 * 0x1p30;
  ASSERT_THAT(proposals({it, use_of(it, {}), {}, {}}, std::nullopt), SizeIs(1));
  it.state = "FAILED";
  it.exit_code = 137;
  EXPECT_THAT(proposals({it, use_of(it, {}), {}, {}}, std::nullopt), ::testing::IsEmpty());
  it.exit_code = 0;
  it.exit_signal = 9;
  EXPECT_THAT(proposals({it, use_of(it, {}), {}, {}}, std::nullopt), ::testing::IsEmpty());
}

TEST_F(JobView, OfAJobThatRanAgainTheLastRecordsCount) {
  make_record(folder_.path() / "unidle_7" / "n1", 0.2, 1, 0x1p30);
  make_record(folder_.path() / "unidle_7_again2" / "n2", 0.2, 1, 0x1p30);
  make_record(folder_.path() / "unidle_7_again10" / "n3", 0.2, 1, 0x1p30);
  fs::create_directories(folder_.path() / "unidle_7_again11");
  make_record(folder_.path() / "unidle_77", 0.2, 1, 0x1p30);
  EXPECT_THAT(records_of("7", folder_.path()), ElementsAre(folder_.path() / "unidle_7_again10" / "n3"));
  EXPECT_THAT(records_of("8", folder_.path()), IsEmpty());
}

TEST_F(JobView, AnAnalysisIsOfAllNodes) {
  make_record(folder_.path() / "unidle_7" / "n1", 0.2, 1, 0x1p30);
  make_record(folder_.path() / "unidle_7" / "n2", 0.6, 2, 0x1p30);
  const auto document = to_json(analyze(job(), folder_.path(), Language::kEnglish));
  ASSERT_EQ(document["per_node"].size(), 2U);
  EXPECT_EQ(document["per_node"][0]["node"], "n1");
  EXPECT_EQ(document["per_node"][1]["node"], "n2");
}

TEST_F(JobView, NodesAreAddedUp) {
  make_record(folder_.path() / "unidle_7" / "n1", 0.2, 1, 0x1p30);
  make_record(folder_.path() / "unidle_7" / "n2", 0.6, 2, 0x1p30);
  const JobFiles files = files_of(job(), folder_.path());
  ASSERT_THAT(files.records, SizeIs(2));
  const Use use = use_of(job(), files);
  EXPECT_THAT(use.gpu, Optional(DoubleEq(0.4)));
  EXPECT_THAT(use.cpus, Optional(DoubleEq(3)));
}

TEST_F(JobView, ANodeNeedsWhatTheOneThatUsedMostDid) {
  make_record(folder_.path() / "unidle_7" / "n1", 0.2, 1, 2 * 0x1p30);
  make_record(folder_.path() / "unidle_7" / "n2", 0.6, 9, 100 * 0x1p30);
  Job it = job();
  it.nodes = 2;
  it.cpus = 64;
  it.memory_bytes = 512 * 0x1p30;
  const Row row = row_of(it, files_of(it, folder_.path()));
  const std::vector<LineChange> lines = proposals(row, std::nullopt);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].line, "--cpus-per-task=12");
  EXPECT_EQ(lines[1].line, "--mem=125G");
  EXPECT_THAT(job_text(row), HasSubstr("100.0 GiB of memory at most on a node"));
}

TEST_F(JobView, OfSeveralNodesAccountingTellsTheMostOfOne) {
  Job it = job();
  it.nodes = 4;
  it.cpus = 64;
  it.memory_bytes = 1024 * 0x1p30;
  it.peak_memory_bytes = 100 * 0x1p30;
  EXPECT_EQ(proposals({it, use_of(it, {}), {}, {}}, std::nullopt).front().line, "--mem=125G");
  it.peak_memory_bytes = 130 * 0x1p30;
  EXPECT_THAT(proposals({it, use_of(it, {}), {}, {}}, std::nullopt), IsEmpty());
}

TEST_F(JobView, TasksOfANodeShareItsCpus) {
  Job it = job();
  it.cpus = 32;
  it.tasks_per_node = 4;
  it.cpu_time_s = 8.0 * 7200;
  const std::vector<LineChange> lines = proposals({it, use_of(it, {}), {}, {}}, std::nullopt);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].line, "--cpus-per-task=3");
  it.cpu_time_s = 20.0 * 7200;
  EXPECT_THAT(proposals({it, use_of(it, {}), {}, {}}, std::nullopt), IsEmpty());
}

TEST_F(JobView, WhatWasNotMeasuredProposesNothing) {
  Job it = job();
  it.cpu_time_s = 0;
  it.peak_memory_bytes = 1180 * 1024.0;  // of the shell only
  const Use use = use_of(it, {});
  EXPECT_FALSE(use.cpus);
  EXPECT_FALSE(use.peak_memory_bytes);
  EXPECT_THAT(proposals({it, use, {}, {}}, std::nullopt), IsEmpty());
}

TEST_F(JobView, AFailureAtTheStartDoesNotShowWhatAJobNeeds) {
  Job it = job();
  it.state = "FAILED";
  it.elapsed_s = 59;
  it.cpu_time_s = 47;
  it.peak_memory_bytes = 0x1p30;
  EXPECT_THAT(proposals({it, use_of(it, {}), {}, {}}, std::nullopt), IsEmpty());
  it.elapsed_s = 60;
  EXPECT_THAT(proposals({it, use_of(it, {}), {}, {}}, std::nullopt), SizeIs(2));
  it.elapsed_s = 59;
  it.state = "COMPLETED";
  EXPECT_THAT(proposals({it, use_of(it, {}), {}, {}}, std::nullopt), SizeIs(2));
}

TEST_F(JobView, LogsServeWhereThereIsNoRecord) {
  std::ofstream(folder_.path() / "gpu_utilization_7.log")
      << "timestamp, utilization.gpu [%], memory.used [MiB]\n2025/08/22 16:46:12.159, 0 %, 572 MiB\n"
         "2025/08/22 16:46:22.159, 10 %, 572 MiB\n";
  EXPECT_THAT(files_of(job(), folder_.path()).logs, SizeIs(1));
  EXPECT_THAT(files_of(job(), folder_.path() / "none").logs, IsEmpty());
}

TEST_F(JobView, AccountingServesWhereThereIsNoRecord) {
  Job it = job();
  it.cpu_time_s = 3600;
  it.peak_memory_bytes = 0x1p30;
  const Use use = use_of(it, {});
  EXPECT_THAT(use.cpus, Optional(DoubleEq(0.5)));
  EXPECT_THAT(use.peak_memory_bytes, Optional(DoubleEq(0x1p30)));
  EXPECT_FALSE(wasted_gpu_hours(it, use));
}

TEST_F(JobView, WorkersNeedCpus) {
  Job it = job();
  it.cpus = 2;
  const std::vector<LineChange> lines = proposals({it, {}, {}, {}}, 4);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].line, "--cpus-per-task=5");
}

TEST_F(JobView, TooLittleMemoryIsDoubled) {
  Job it = job();
  it.state = "OUT_OF_MEMORY";
  const std::vector<LineChange> lines = proposals({it, {}, {}, {}}, std::nullopt);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].line, "--mem=128G");
}

TEST(Tables, TheWorstComesFirst) {
  std::vector<Row> rows(3, Row{job(), {}, {}, {}});
  rows[0].use.gpu = 0.9;
  rows[1].job.id = "8";
  rows[1].use.gpu = 0.1;
  rows[2].job.id = "9";
  const std::string text = top_table(rows);
  EXPECT_LT(text.find("\n8 "), text.find("\n7 "));
  EXPECT_LT(text.find("\n7 "), text.find("\n9 "));
  EXPECT_THAT(text, HasSubstr("12.0 GPU hours were held, 4 of them wasted; of 1 job nobody knows"));
  const Totals totals = totals_of(rows);
  EXPECT_EQ(std::tuple(totals.gpu_hours, totals.wasted_gpu_hours, totals.unknown), std::tuple(12.0, 4.0, 1U));
  EXPECT_THAT(top_table(rows, Language::kEnglish, 2.5),
              HasSubstr("4 of them wasted; at 2.5 an hour that is 30.0 and 10.0; of 1 job"));
}

TEST(Tables, TellHowAJobEnded) {
  Row row{job(), {}, {}, {}};
  row.job.state = "TIMEOUT";
  row.job.elapsed_s = 14400;
  EXPECT_THAT(job_text(row), HasSubstr("TIMEOUT after 4:00:00 of 4:00:00: its time was over"));
  row.job.state = "PENDING";
  row.job.reason = "Priority";
  EXPECT_THAT(job_text(row), HasSubstr("waits: Priority"));
  EXPECT_THAT(status_table({row}), HasSubstr("Priority"));
}

/// A job killed by the kernel for its memory, as `scontrol --oneliner show job` prints it.
TEST_F(JobView, OutOfMemoryIsToldWithoutASignal) {
  const Job job = parse_scontrol(
      "JobId=3 JobName=hog UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A Priority=4294901757 Nice=0 "
      "Account=(null) QOS=(null) JobState=OUT_OF_MEMORY Reason=OutOfMemory Dependency=(null) Requeue=0 Restarts=0 "
      "BatchFlag=1 Reboot=0 ExitCode=0:125 RunTime=00:01:12 TimeLimit=01:00:00 TimeMin=N/A "
      "SubmitTime=2026-11-23T00:12:01 StartTime=2026-11-23T00:12:02 EndTime=2026-11-23T00:13:14 Partition=main "
      "NodeList=n1 BatchHost=n1 NumNodes=1 NumCPUs=2 NumTasks=1 CPUs/Task=2 "
      "TRES=cpu=2,mem=16G,node=1,billing=2,gres/gpu=1 WorkDir=/home/ada Power= NtasksPerTRES:0");
  EXPECT_TRUE(job.failed());
  EXPECT_EQ(state_text(job), "OUT_OF_MEMORY after 0:01:12 of 1:00:00 on n1: it used more memory than it had asked for");
  const std::vector<LineChange> lines = proposals({job, {}, {}, {}}, std::nullopt);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].line, "--mem=32G");
  EXPECT_THAT(lines[0].why, HasSubstr("16.0 GiB were not enough"));
}

/// What Slurm 22.05 reports for a job with a step that exceeded its memory: the script went on, so the job is FAILED.
TEST_F(JobView, AStepThatWasKilledForItsMemoryIsFoundInTheOutput) {
  Job it = job();
  it.state = "FAILED";
  it.exit_code = 1;
  it.memory_bytes = 0x1p30;
  it.output = folder_.path() / "gpu_run_7_detailed.log";
  const auto row_with = [&](const std::string& line) {
    std::ofstream(it.output) << "step 1/10\n" << line << "\nsrun: error: n1: task 0: Killed\n";
    return row_of(it, files_of(it, folder_.path()));
  };
  const Row by_kernel = row_with(
      "slurmstepd-n1: error: Detected 1 oom-kill event(s) in StepId=7.0. Some of your processes may have been killed "
      "by the cgroup out-of-memory handler.");
  EXPECT_THAT(state_text(by_kernel.job), HasSubstr("it used more memory than it had asked for"));
  ASSERT_THAT(proposals(by_kernel, std::nullopt), SizeIs(1));
  EXPECT_EQ(proposals(by_kernel, std::nullopt)[0].line, "--mem=2G");
  const Row by_slurm =
      row_with("slurmstepd-n1: error: StepId=7.0 exceeded memory limit (458952704 > 419430400), being killed");
  EXPECT_TRUE(by_slurm.job.out_of_memory());
  EXPECT_FALSE(row_with("train.py says: oom-kill event").job.out_of_memory()) << "not Slurm's own words";
}

TEST(Progress, IsOfTheWholeRun) {
  const auto share_of = [](const std::string& text) {
    logs::Source source("log", text);
    const auto progress = progress_in(logs::read_text_log(source));
    return progress ? progress->share() : -1;
  };
  EXPECT_DOUBLE_EQ(share_of("step 1/300\nstep 75/300 loss 0.5\n"), 0.25);
  EXPECT_DOUBLE_EQ(share_of("Epoch 1/10 loss 0.5\nEpoch 2/10 loss 0.4\n"), 0.2);
  EXPECT_DOUBLE_EQ(share_of("Epoch: [3/10][50/100] loss 0.4\n"), 0.25);
  EXPECT_DOUBLE_EQ(share_of("Epoch 3/10:  50%|#####     | 50/100 [00:10<00:10,  5.0it/s]\n"), 0.25);
  EXPECT_DOUBLE_EQ(share_of("Training:  50%|#####     | 50/100 [00:10<00:10,  5.0it/s]\n"), 0.5);
  EXPECT_DOUBLE_EQ(share_of("Epoch 2/10 step 150/1000 loss 0.4\n"), 0.15) << "steps of all epochs";
  EXPECT_DOUBLE_EQ(share_of("Epoch 3 step 50/100 loss 0.4\n"), -1) << "of how many epochs is not told";
  EXPECT_DOUBLE_EQ(share_of("step 17 loss 0.4\n"), -1);
  EXPECT_DOUBLE_EQ(share_of(""), -1);
}

TEST_F(JobView, TellsWhatTheWholeWouldTake) {
  Job it = job();
  it.state = "TIMEOUT";
  it.elapsed_s = 3600;
  it.limit_s = 3600;
  it.output = folder_.path() / "out.log";
  std::ofstream(it.output) << "step 1/300\nstep 75/300 loss 0.5\n";
  const Row row = row_of(it, files_of(it, folder_.path()));
  EXPECT_THAT(row.expected(), Optional(DoubleEq(4 * 3600)));
  EXPECT_THAT(job_text(row), HasSubstr("It came to step 75 of 300, and would have needed 4:00:00 in all at that pace, "
                                       "more than its limit"));
  const std::vector<LineChange> lines = proposals(row, std::nullopt);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].line, "--time=5:00:00");
  EXPECT_EQ(to_json(row)["expected_s"], 4 * 3600);
  EXPECT_THAT(status_table({row}), HasSubstr("25 %"));
}

TEST(JobText, InChinese) {
  Job job;
  job.id = "7";
  job.name = "train";
  job.state = "TIMEOUT";
  job.elapsed_s = job.limit_s = 4 * 3600.0;
  job.nodes = 1;
  job.cpus = 8;
  job.gpus = 1;
  job.memory_bytes = 16.0 * 0x1p30;
  const Row row{job, {0.25, 2.0, 2.0, 4.0 * 0x1p30}, std::nullopt, Progress{"epoch", 5, 10}};
  EXPECT_EQ(job_text(row, Language::kChinese),
            "任务 7 train：TIMEOUT，用了 4:00:00（限制 4:00:00）：时间用完而工作没有做完。\n"
            "申请了：1 个节点、8 个 CPU、1 个 GPU、16.0 GiB。\n"
            "使用了：GPU 25 % 忙碌；8 个 CPU 中的 2 个；内存最多 4.0 GiB。\n"
            "曾进行到第 5 轮（共 10），按此速度总共本需要 8:00:00，超过了限制。\n");
  for (const LineChange& proposal : proposals(row, std::nullopt, Language::kChinese)) {
    EXPECT_NE(proposal.why, "");
    for (const LineChange& english : proposals(row, std::nullopt)) {
      EXPECT_NE(proposal.why, english.why);
    }
  }
}

TEST(Tables, TitlesHaveTranslations) {
  const auto has_latin_word = [](const std::string& line) {
    return std::ranges::any_of(line, [](char c) { return c >= 'A' && c <= 'Z'; }) && line.find("GPU") == line.npos;
  };
  for (const std::string& table : {status_table({}, Language::kChinese), top_table({}, Language::kChinese)}) {
    std::istringstream cells(table.substr(0, table.find('\n')));
    for (std::string cell; cells >> cell;) {
      EXPECT_FALSE(has_latin_word(cell)) << cell;
    }
  }
}

}  // namespace
}  // namespace unidle::slurm
