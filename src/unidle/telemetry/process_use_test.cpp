#include "unidle/telemetry/process_use.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "unidle/base/testing/machine_files.h"
#include "unidle/telemetry/host_state.h"
#include "unidle/telemetry/sampler.h"

namespace unidle::telemetry {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

ProcessStat named(const std::string& name) {
  ProcessStat stat;
  stat.name = name;
  return stat;
}

TEST(ClassifyTest, RolesByNameAndCommand) {
  EXPECT_EQ(classify(named("python"), "python train.py", ""), Role::kTrainer);
  EXPECT_EQ(classify(named("python"), "python train.py", "python train.py"), Role::kLoader) << "a fork";
  EXPECT_EQ(classify(named("pt_data_worker"), "python train.py", "python -m x"), Role::kLoader);
  EXPECT_EQ(classify(named("python"), "python -c from multiprocessing.spawn import spawn_main --multiprocessing-fork",
                     "python train.py"),
            Role::kLoader);
  EXPECT_EQ(classify(named("python"), "python -c from multiprocessing.resource_tracker import main", "python train.py"),
            Role::kHelper);
  EXPECT_EQ(classify(named("bash"), "bash run.sh", ""), Role::kLauncher);
  EXPECT_EQ(classify(named("bash"), "bash run.sh", "bash run.sh"), Role::kLauncher) << "a subshell loads nothing";
  EXPECT_EQ(classify(named("python3"), "python3 -m torch.distributed.run train.py", ""), Role::kLauncher);
  EXPECT_EQ(classify(named("kworker"), "", ""), Role::kTrainer) << "no command line is no copy";
}

class ProcessUseTest : public unidle::testing::MachineFiles {
 protected:
  void put_process(int pid, int parent, const std::string& name, const std::string& command, int ticks,
                   std::int64_t wait_ns) const {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    put(folder + "stat", std::to_string(pid) + " (" + name + ") R " + std::to_string(parent) +
                             " 1 1 0 -1 4194304 10 2 30 4 " + std::to_string(ticks) +
                             " 0 0 0 20 0 3 0 555 1000000 10 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 "
                             "250 0 0\n");
    put(folder + "cmdline", command);
    put(folder + "task/" + std::to_string(pid) + "/schedstat", "5 " + std::to_string(wait_ns) + " 1\n");
    put(folder + "task/" + std::to_string(pid + 1000) + "/schedstat", "5 1000000000 1\n");
  }
};

TEST_F(ProcessUseTest, TreeWithRolesAndDelays) {
  put_process(10, 1, "bash", std::string("bash\0run.sh", 11), 1, 0);
  put_process(11, 10, "python", "python train.py", 100, 500'000'000);
  put_process(12, 11, "python", "python train.py", 50, 0);
  put_process(13, 11, "python", "python -c resource_tracker", 1, 0);
  const auto all = ProcessUseReader(10, root()).read();
  std::map<std::int64_t, std::string> roles;
  for (const ProcessUse& process : all) {
    roles[process.stat.pid] = to_string(process.role);
  }
  EXPECT_EQ(roles,
            (std::map<std::int64_t, std::string>{{10, "launcher"}, {11, "trainer"}, {12, "loader"}, {13, "helper"}}));
  EXPECT_DOUBLE_EQ(all[1].run_delay_s.value_or(0), 1.5) << "all threads";
  put("proc/11/task/11/schedstat", "0 0 0\n");
  put("proc/11/task/1011/schedstat", "0 0 0\n");
  EXPECT_EQ(read_run_delay(11, root()), std::nullopt) << "the kernel does not count";
  EXPECT_EQ(all[1].stat.major_faults, 30U);
  EXPECT_DOUBLE_EQ(all[1].stat.io_delay_s, 250.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

TEST_F(ProcessUseTest, AProcessIsJudgedAgainAfterItsExec) {
  put_process(10, 1, "python", "python train.py", 100, 0);
  put_process(11, 10, "python", "python train.py", 1, 0);
  ProcessUseReader reader(10, root());
  EXPECT_EQ(reader.read().at(1).role, Role::kLoader) << "between fork and exec it looks like its parent";
  put_process(11, 10, "bash", "bash export.sh", 1, 0);
  EXPECT_EQ(reader.read().at(1).role, Role::kLauncher);
}

TEST_F(ProcessUseTest, ARankStartedByMultiprocessingTrains) {
  put_process(10, 1, "python", "python launch.py", 1, 0);
  put_process(11, 10, "python", "python -c from multiprocessing.spawn import spawn_main", 1, 0);
  put_process(12, 11, "pt_data_worker", "python -c from multiprocessing.spawn import spawn_main", 1, 0);
  const auto all = ProcessUseReader(10, root()).read();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].role, Role::kTrainer);
  EXPECT_EQ(all[2].role, Role::kLoader);
}

TEST_F(ProcessUseTest, NoSchedstatIsNotZero) {
  put_process(10, 1, "python", "python", 1, 0);
  fs::remove_all(root() / "proc/10/task");
  EXPECT_FALSE(ProcessUseReader(10, root()).read().at(0).run_delay_s.has_value());
}

TEST_F(ProcessUseTest, ForeignProcesses) {
  const GpuProcess ours{11, 100, std::nullopt, std::nullopt};
  const GpuProcess theirs{99, 100, std::nullopt, std::nullopt};
  EXPECT_FALSE(foreign_processes({theirs}, {10, 11}, root()).has_value())
      << "perhaps it is ours under its number of the host";
  EXPECT_EQ(foreign_processes({ours, theirs}, {10, 11}, root())->size(), 1U);
  EXPECT_THAT(*foreign_processes({}, {10}, root()), IsEmpty());
  put("proc/11/status", "Name:\tx\nNSpid:\t11\t99\n");
  EXPECT_THAT(*foreign_processes({theirs}, {10, 11}, root()), IsEmpty()) << "by its number in its own namespace";
  make_folders(root() / "proc/self/ns");
  fs::create_symlink("pid:[4026531836]", root() / "proc/self/ns/pid");
  EXPECT_EQ(foreign_processes({{55, 1, {}, {}}}, {10, 11}, root())->size(), 1U) << "on the host numbers are numbers";
}

TEST_F(ProcessUseTest, RanksOfOneJobAreNoStrangersToEachOther) {
  const auto environment = [&](int pid, const std::string& text) {
    std::string zeros = text;
    std::replace(zeros.begin(), zeros.end(), ' ', '\0');
    put("proc/" + std::to_string(pid) + "/environ", zeros);
  };
  make_folders(root() / "proc/self/ns");
  fs::create_symlink("pid:[4026531836]", root() / "proc/self/ns/pid");
  put_process(10, 1, "python", "python train.py", 100, 0);
  const GpuProcess other{20, 1, {}, {}};
  environment(10, "MASTER_ADDR=node1 MASTER_PORT=29500 RANK=0 ");
  environment(20, "RANK=1 MASTER_ADDR=node1 MASTER_PORT=29500 ");
  EXPECT_THAT(*foreign_processes({other}, {10}, root()), IsEmpty());
  environment(20, "RANK=1 MASTER_ADDR=node1 MASTER_PORT=29501 ");
  EXPECT_EQ(foreign_processes({other}, {10}, root())->size(), 1U) << "another job of this machine";
  environment(10, "SLURM_JOB_ID=7 ");
  environment(20, "SLURM_JOB_ID=7 ");
  EXPECT_THAT(*foreign_processes({other}, {10}, root()), IsEmpty());
  environment(10, "HOME=/root ");
  environment(20, "HOME=/root ");
  EXPECT_EQ(foreign_processes({other}, {10}, root())->size(), 1U);
}

TEST_F(ProcessUseTest, SourceGivesRolesAsRates) {
  ::setenv("UNIDLE_HOST_ROOT", root().c_str(), 1);
  put("proc/sys/kernel/task_delayacct", "0\n");
  put_process(10, 1, "python", "python train.py", 100, 0);
  put_process(11, 10, "python", "python train.py", 100, 0);
  const auto source = process_tree_source(10);
  std::map<std::string, double> seen;
  const auto sink = [&](const Reading& reading) {
    seen[std::string(reading.name) + " " + reading.subject] = reading.value;
  };
  source->read(kNsPerSecond, sink);
  EXPECT_EQ(seen.count("role.cpu loader"), 0U) << "one reading is no rate";
  const int second = static_cast<int>(::sysconf(_SC_CLK_TCK));
  put_process(11, 10, "python", "python train.py", 100 + second, 2'000'000'000);
  put_process(12, 10, "python", "python train.py", second, 0);
  seen.clear();
  source->read(3 * kNsPerSecond, sink);
  ::unsetenv("UNIDLE_HOST_ROOT");
  EXPECT_DOUBLE_EQ(seen.at("role.cpu trainer"), 0);
  EXPECT_DOUBLE_EQ(seen.at("role.cpu loader"), 1.0) << "one second each of two, over two seconds";
  EXPECT_DOUBLE_EQ(seen.at("role.processes loader"), 2);
  EXPECT_DOUBLE_EQ(seen.at("role.run_delay loader"), (2.0 + 1.0) / 2) << "a new process counts whole";
  EXPECT_DOUBLE_EQ(seen.at("tree.major_faults "), 15) << "of the new one";
  EXPECT_EQ(seen.count("tree.io_delay "), 0U) << "the kernel does not account for it";
}

TEST_F(ProcessUseTest, HostSource) {
  ::setenv("UNIDLE_HOST_ROOT", root().c_str(), 1);
  const auto ticks = static_cast<int>(::sysconf(_SC_CLK_TCK));
  put("proc/stat", "cpu  0 0 0 0 0 0 0 0\n");
  put("proc/self/cgroup", "0::/\n");
  put("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  put("sys/fs/cgroup/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_usec 0\n");
  const auto source = host_source();
  std::map<std::string, double> seen;
  const auto sink = [&](const Reading& reading) { seen[std::string(reading.name)] = reading.value; };
  source->read(kNsPerSecond, sink);
  put("proc/stat", "cpu  " + std::to_string(ticks) + " 0 0 0 " + std::to_string(2 * ticks) + " 0 0 0\n");
  put("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n");
  put("sys/fs/cgroup/cpu.stat", "nr_periods 9\nnr_throttled 8\nthrottled_usec 3000000\n");
  source->read(2 * kNsPerSecond, sink);
  ::unsetenv("UNIDLE_HOST_ROOT");
  EXPECT_DOUBLE_EQ(seen.at("host.cpu"), 1);
  EXPECT_DOUBLE_EQ(seen.at("host.iowait"), 2);
  EXPECT_DOUBLE_EQ(seen.at("host.cpu_pressure"), 0.5);
  EXPECT_DOUBLE_EQ(seen.at("cgroup.throttled"), 3);
  EXPECT_EQ(seen.count("host.io_pressure"), 0U);
  EXPECT_EQ(seen.count("host.memory_available"), 0U);
}

}  // namespace
}  // namespace unidle::telemetry
