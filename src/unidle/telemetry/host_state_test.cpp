#include "unidle/telemetry/host_state.h"

#include <gmock/gmock.h>

#include "unidle/base/testing/machine_files.h"

namespace unidle::telemetry {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HostState : public unidle::testing::MachineFiles {};

TEST_F(HostState, NothingIsKnownOfAnEmptyMachine) {
  const MemoryState memory = read_memory_state(root());
  EXPECT_FALSE(memory.available_bytes.has_value());
  EXPECT_FALSE(memory.shm_bytes.has_value());
  EXPECT_FALSE(read_pressure("cpu", root()).has_value());
  const CgroupUse use = read_cgroup_use(root());
  EXPECT_FALSE(use.throttled_s.has_value());
  EXPECT_FALSE(use.memory_bytes.has_value());
  EXPECT_EQ(affinity_list(root()), "");
}

TEST_F(HostState, PressureAndItsMeasuredZero) {
  put("proc/pressure/io", "some avg10=12.50 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 total=1\n");
  put("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  put("proc/pressure/memory", "full avg10=0.00 total=0\n");
  const auto io = read_pressure("io", root());
  ASSERT_TRUE(io.has_value());
  EXPECT_DOUBLE_EQ(io->some_s, 2.5);
  EXPECT_DOUBLE_EQ(io->some_10s.value_or(-1), 0.125);
  EXPECT_DOUBLE_EQ(read_pressure("cpu", root())->some_s, 0);
  EXPECT_FALSE(read_pressure("memory", root()).has_value());
}

TEST_F(HostState, ThrottlingOfTheStrictestGroupOfVersionTwo) {
  put("proc/self/cgroup", "0::/slurm/job\n");
  put("sys/fs/cgroup/slurm/cpu.stat", "usage_usec 9\nnr_periods 100\nnr_throttled 60\nthrottled_usec 7000000\n");
  put("sys/fs/cgroup/slurm/job/cpu.stat", "usage_usec 9\nnr_periods 100\nnr_throttled 2\nthrottled_usec 1\n");
  put("sys/fs/cgroup/slurm/job/memory.current", "4096\n");
  put("sys/fs/cgroup/slurm/memory.current", "8192\n");
  put("sys/fs/cgroup/slurm/job/memory.events", "low 0\noom 1\noom_kill 3\n");
  const CgroupUse use = read_cgroup_use(root());
  EXPECT_EQ(use.throttled_periods, 60U);
  EXPECT_DOUBLE_EQ(use.throttled_s.value_or(0), 7);
  EXPECT_EQ(use.memory_bytes, 4096U) << "of the innermost group";
  EXPECT_EQ(use.oom_kills, 3U);
}

TEST_F(HostState, VersionOneCountsNanoseconds) {
  put("proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.stat", "nr_periods 10\nnr_throttled 5\nthrottled_time 1500000000\n");
  put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1234\n");
  put("sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  const CgroupUse use = read_cgroup_use(root());
  EXPECT_DOUBLE_EQ(use.throttled_s.value_or(0), 1.5);
  EXPECT_EQ(use.memory_bytes, 1234U);
  EXPECT_EQ(use.oom_kills, 1U);
}

TEST_F(HostState, CpuLists) {
  EXPECT_THAT(parse_cpu_list("0-2,8\n"), ElementsAre(0, 1, 2, 8));
  for (const char* bad : {"", "3-1", "x", "1-999999999", "1,,2"}) {
    EXPECT_THAT(parse_cpu_list(bad), IsEmpty()) << bad;
  }
}

TEST_F(HostState, AVirtualDiskThatSaysRotationalIsNotKnownToSpin) {
  put("proc/self/mountinfo", "1 0 254:0 / / rw - ext4 /dev/vda rw\n");
  put("sys/devices/virtio/vda/queue/rotational", "1\n");
  make_folders(root() / "sys/dev/block");
  fs::create_directory_symlink(root() / "sys/devices/virtio/vda", root() / "sys/dev/block/254:0");
  const Storage storage = read_storage(root(), root());
  EXPECT_EQ(storage.device, "vda");
  EXPECT_EQ(storage.kind, "unknown");
}

}  // namespace
}  // namespace unidle::telemetry
