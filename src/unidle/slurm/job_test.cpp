#include "unidle/slurm/job.h"

#include <gmock/gmock.h>

#include <limits>

namespace unidle::slurm {
namespace {

using ::testing::DoubleEq;
using ::testing::Optional;

TEST(Duration, IsReadAsSbatchReadsIt) {
  EXPECT_THAT(parse_duration("30"), Optional(DoubleEq(1800)));
  EXPECT_THAT(parse_duration("30:10"), Optional(DoubleEq(1810)));
  EXPECT_THAT(parse_duration("4:00:00"), Optional(DoubleEq(14400)));
  EXPECT_THAT(parse_duration("2-3"), Optional(DoubleEq(2 * 86400 + 3 * 3600)));
  EXPECT_THAT(parse_duration("0-3"), Optional(DoubleEq(3 * 3600)));
  EXPECT_THAT(parse_duration("5-03:00:30"), Optional(DoubleEq(5 * 86400 + 3 * 3600 + 30)));
  EXPECT_THAT(parse_duration("01:02.345"), Optional(DoubleEq(62.345)));  // of sacct's TotalCPU
  for (const char* none : {"UNLIMITED", "Partition_Limit", "", "1:2:3:4", "x-1", "-1"}) {
    EXPECT_FALSE(parse_duration(none)) << none;
  }
  EXPECT_EQ(format_duration(5400), "1:30:00");
  EXPECT_EQ(format_duration(5 * 86400 + 3 * 3600), "5-03:00:00");
  EXPECT_EQ(format_duration(-4), "0:00:00");
}

TEST(Memory, HasUnits) {
  EXPECT_THAT(parse_memory("2000M"), Optional(DoubleEq(2000 * 0x1p20)));
  EXPECT_THAT(parse_memory("32g"), Optional(DoubleEq(32 * 0x1p30)));
  EXPECT_THAT(parse_memory("32"), Optional(DoubleEq(32 * 0x1p20)));
  EXPECT_THAT(parse_memory("1.5T"), Optional(DoubleEq(1.5 * 0x1p40)));
  EXPECT_THAT(parse_memory("4Gn"), Optional(DoubleEq(4 * 0x1p30)));
  EXPECT_FALSE(parse_memory("much"));
  EXPECT_FALSE(parse_memory(""));
}

TEST(Resources, AreCounted) {
  EXPECT_EQ(count_of("cpu=2,mem=400M,node=2,billing=2,gres/gpu=3", "gres/gpu"), 3);
  EXPECT_EQ(count_of("gres/gpu=2,gres/gpu:a100=2", "gres/gpu"), 2);
  EXPECT_EQ(count_of("gres/gpu:a100=2,gres/gpu:v100=1", "gres/gpu"), 3);
  EXPECT_EQ(count_of("cpu=2", "gres/gpu"), 0);
  EXPECT_EQ(count_of("", "gres/gpu"), 0);
}

/// As slurmctld 22.05.8 wrote it.
constexpr const char* kLine =
    "JobId=1 JobName=my job UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A Priority=4294901759 Nice=0 "
    "Account=(null) QOS=(null) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=2 BatchFlag=1 "
    "Reboot=0 "
    "ExitCode=1:9 RunTime=00:01:05 TimeLimit=1-00:02:00 TimeMin=N/A SubmitTime=2026-11-23T00:12:01 "
    "EligibleTime=2026-11-23T00:12:01 StartTime=2026-11-23T00:12:03 EndTime=2026-11-24T00:14:03 Deadline=N/A "
    "Partition=main NodeList=n[1-2] BatchHost=n1 NumNodes=2 NumCPUs=4-8 NumTasks=2 CPUs/Task=1 "
    "ReqB:S:C:T=0:0:*:* TRES=cpu=2,mem=400M,node=2,billing=2 Socks/Node=* Command=/home/ada/UserId=root(0) "
    "WorkDir=/home/ada/my runs Comment=unidle:/home/ada/results StdErr=/home/ada/slurm-1.out StdIn=/dev/null "
    "StdOut=/home/ada/slurm-1.out Power= TresPerNode=gres:gpu:1 ";

TEST(Scontrol, IsRead) {
  const Job job = parse_scontrol(kLine);
  EXPECT_EQ(job.id, "1");
  EXPECT_EQ(job.name, "my job");
  EXPECT_EQ(job.user, "ada");
  EXPECT_EQ(job.account, "");
  EXPECT_TRUE(job.runs());
  EXPECT_EQ(job.reason, "");
  EXPECT_EQ(job.ended, "");
  EXPECT_THAT(job.elapsed_s, Optional(DoubleEq(65)));
  EXPECT_THAT(job.limit_s, Optional(DoubleEq(86520)));
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.cpus, 4);
  EXPECT_EQ(job.gpus, 2);
  EXPECT_THAT(job.memory_bytes, Optional(DoubleEq(400 * 0x1p20)));
  EXPECT_EQ(job.exit_code, 1);
  EXPECT_EQ(job.exit_signal, 9);
  EXPECT_EQ(job.folder, "/home/ada/my runs");
  EXPECT_EQ(job.comment, "unidle:/home/ada/results");
}

TEST(Scontrol, NumbersThatNoJobHasAreNone) {
  EXPECT_EQ(count_of("gres/gpu:a=2147483647,gres/gpu:b=2147483647", "gres/gpu"), std::numeric_limits<int>::max());
  EXPECT_EQ(count_of("gres/gpu=-1", "gres/gpu"), 0);
  EXPECT_EQ(parse_scontrol("JobId=1 NumNodes=3 TresPerNode=gres:gpu:2147483647").gpus, std::numeric_limits<int>::max());
  for (const char* time : {"1e300-00:00:00", "1e300", "-5-00:00:00"}) {
    EXPECT_EQ(parse_duration(time), std::nullopt) << time;
  }
  for (const char* memory : {"1e300", "1e6P"}) {
    EXPECT_EQ(parse_memory(memory), std::nullopt) << memory;
  }
}

TEST(Scontrol, TasksOfAnArrayHaveTheirOwnId) {
  EXPECT_EQ(parse_scontrol("JobId=5 ArrayJobId=4 ArrayTaskId=2 JobName=a JobState=RUNNING").id, "4_2");
  EXPECT_EQ(parse_scontrol("JobId=4 ArrayJobId=4 ArrayTaskId=3-9%2 JobName=a JobState=PENDING").id, "4_[3-9%2]");
}

TEST(Scontrol, OddLinesAreRead) {
  EXPECT_EQ(parse_scontrol("").id, "");
  EXPECT_EQ(parse_scontrol("JobId=").id, "");
  EXPECT_EQ(parse_scontrol("JobId=7 ExitCode=x:y NumNodes=many TRES=,,=,mem=").nodes, 0);
}

TEST(State, IsTold) {
  Job job;
  job.state = "TIMEOUT";
  EXPECT_TRUE(job.failed());
  job.state = "COMPLETED";
  EXPECT_FALSE(job.failed());
  job.state = "PENDING";
  EXPECT_TRUE(job.waits());
  EXPECT_FALSE(job.failed());
}

}  // namespace
}  // namespace unidle::slurm
