#include "unidle/telemetry/process_tree.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "unidle/base/testing/fake_clock.h"
#include "unidle/base/testing/machine_files.h"
#include "unidle/telemetry/sampler.h"

namespace unidle::telemetry {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;

class ProcessTree : public unidle::testing::MachineFiles {
 protected:
  void put_process(int pid, int parent, const std::string& name, int user_ticks, int child_ticks, char state) const {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    put(folder + "stat", std::to_string(pid) + " (" + name + ") " + state + " " + std::to_string(parent) +
                             " 1 1 0 -1 4194304 1 2 3 4 " + std::to_string(user_ticks) + " 0 " +
                             std::to_string(child_ticks) + " 0 20 0 3 0 555 1000000 10 18446744073709551615 1 1 1\n");
  }
};

TEST_F(ProcessTree, NamesWithBlanksAndBrackets) {
  put_process(7, 1, "a) (b c", 250, 0, 'S');
  const auto stat = read_process_stat(7, root());
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->name, "a) (b c");
  EXPECT_EQ(stat->parent, 1);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->threads, 3);
  EXPECT_EQ(stat->start_ticks, 555U);
  EXPECT_DOUBLE_EQ(stat->cpu_s, 250.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

TEST_F(ProcessTree, MalformedStatIsNothing) {
  for (const char* text : {"", "7", "7 (x", "7 (x)", "7 (x) S", "7 (x) S 1 2 3", ") ("}) {
    EXPECT_FALSE(parse_process_stat(text).has_value()) << text;
  }
}

TEST_F(ProcessTree, FoundByParentsWhereTheKernelKeepsNoLists) {
  put_process(10, 1, "train", 0, 0, 'S');
  put_process(11, 10, "worker", 0, 0, 'S');
  put_process(12, 11, "helper", 0, 0, 'S');
  put_process(13, 1, "other", 0, 0, 'S');
  EXPECT_THAT(process_tree(10, root()), ElementsAre(10, 11, 12));
}

TEST_F(ProcessTree, FoundByListsOfChildren) {
  put("proc/10/task/10/children", "11 ");
  put("proc/10/task/99/children", "12 ");
  put("proc/11/task/11/children", "");
  EXPECT_THAT(process_tree(10, root()), ::testing::UnorderedElementsAre(10, 11, 12));
}

TEST_F(ProcessTree, CpuTimeStaysWhenAChildIsReaped) {
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  put_process(10, 1, "train", 100, 0, 'R');
  put_process(11, 10, "worker", 300, 0, 'D');
  put("proc/11/io", "rchar: 9\nread_bytes: 4096\nwrite_bytes: 1\n");
  ProcessTreeReader reader(10, root());
  TreeUsage usage = reader.read(true, false);
  EXPECT_DOUBLE_EQ(usage.cpu_s, 400 * tick);
  EXPECT_EQ(usage.in_disk_wait, 1);
  EXPECT_EQ(usage.processes, 2);
  EXPECT_EQ(usage.read_bytes, 4096U);
  fs::remove_all(root() / "proc/11");
  EXPECT_DOUBLE_EQ(reader.read(true, false).cpu_s, 400 * tick) << "not waited for yet";
  put_process(10, 1, "train", 110, 300, 'R');
  usage = reader.read(true, false);
  EXPECT_DOUBLE_EQ(usage.cpu_s, 410 * tick);
  EXPECT_EQ(usage.read_bytes, 4096U);
}

TEST_F(ProcessTree, WhatAChildHasReadCountsOnce) {
  put_process(10, 1, "train", 0, 0, 'S');
  put_process(11, 10, "worker", 0, 0, 'S');
  put("proc/10/io", "rchar: 9\nread_bytes: 1000\n");
  put("proc/11/io", "rchar: 9\nread_bytes: 4096\n");
  ProcessTreeReader reader(10, root());
  EXPECT_EQ(reader.read(true, false).read_bytes, 5096U);
  fs::remove_all(root() / "proc/11");
  EXPECT_EQ(reader.read(true, false).read_bytes, 5096U) << "not waited for yet";
  put("proc/10/io", "rchar: 9\nread_bytes: 5096\n");  // the kernel adds it to the parent
  EXPECT_EQ(reader.read(true, false).read_bytes, 5096U);
  put("proc/10/io", "rchar: 9\nread_bytes: 6000\n");
  EXPECT_EQ(reader.read(true, false).read_bytes, 6000U);
}

TEST_F(ProcessTree, ProportionalMemory) {
  put_process(10, 1, "train", 0, 0, 'S');
  ProcessTreeReader reader(10, root());
  EXPECT_FALSE(reader.read(true, true).pss_bytes.has_value());
  put("proc/10/smaps_rollup", "5 [rollup]\nRss:  100 kB\nPss:  40 kB\n");
  EXPECT_EQ(reader.read(true, true).pss_bytes, 40U * 1024);
  EXPECT_FALSE(reader.read(true, false).pss_bytes.has_value());
}

TEST_F(ProcessTree, LiveChildren) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_THAT(process_tree(::getpid(), "/"), Contains(child));
  ProcessTreeReader reader(::getpid(), "/");
  EXPECT_GE(reader.read(true, true).processes, 2);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(ProcessTreeReader(child, "/").read(true, true).processes, 0);
}

class Failing final : public Source {
 public:
  std::string_view name() const override { return "failing"; }
  void read(std::int64_t, const Sink&) override { throw std::runtime_error("no"); }
};

class Counting final : public Source {
 public:
  std::string_view name() const override { return "counting"; }
  void read(std::int64_t t_ns, const Sink& sink) override { sink({"n", "", "", t_ns, 1}); }
};

TEST(SamplerTest, KeepsItsIntervalAndSurvivesAFailingSource) {
  testing::FakeClock clock;
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<Failing>());
  sources.push_back(std::make_unique<Counting>());
  std::mutex mutex;
  std::condition_variable enough;
  std::vector<std::int64_t> times;
  {
    Sampler sampler(clock, 100, std::move(sources), [&](const Reading& reading) {
      const std::lock_guard lock(mutex);
      times.push_back(reading.t_ns);
      enough.notify_one();
    });
    std::unique_lock lock(mutex);
    enough.wait(lock, [&] { return times.size() >= 5; });
    EXPECT_GE(sampler.failures(), 4U);
  }
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(times[i] - times[i - 1], 100);
  }
}

}  // namespace
}  // namespace unidle::telemetry
