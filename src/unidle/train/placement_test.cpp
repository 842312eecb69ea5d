#include "unidle/train/placement.h"

#include <gmock/gmock.h>
#include <sched.h>

#include "unidle/base/testing/machine_files.h"
#include "unidle/train/device.h"

namespace unidle::train {
namespace {

using telemetry::NumaNode;
using ::testing::ElementsAre;

const std::vector<NumaNode> kTwo = {{0, {0, 1, 4, 5}}, {1, {2, 3, 6, 7}}};

TEST(Placement, BesideAGpuItIsTheNodeNextToIt) {
  const auto chosen = choose_placement(kTwo, 1, {.rank = 0, .world = 8});
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->cpus, ElementsAre(2, 3, 6, 7));
  EXPECT_EQ(chosen->sharers, 4);
  EXPECT_EQ(choose_placement(kTwo, 0, {})->sharers, 1);
}

TEST(Placement, ProcessesOnCpusShareTheNodesOut) {
  EXPECT_THAT(choose_placement(kTwo, {}, {.rank = 0, .world = 2})->cpus, ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(choose_placement(kTwo, {}, {.rank = 1, .world = 2})->cpus, ElementsAre(2, 3, 6, 7));
  EXPECT_EQ(choose_placement(kTwo, {}, {.rank = 1, .world = 2})->sharers, 1);
  EXPECT_THAT(choose_placement(kTwo, {}, {.rank = 1, .world = 3})->cpus, ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(choose_placement(kTwo, {}, {.rank = 2, .world = 3})->cpus, ElementsAre(2, 3, 6, 7));
  EXPECT_EQ(choose_placement(kTwo, {}, {.rank = 1, .world = 3})->sharers, 2);
  const std::vector<NumaNode> four = {{0, {0}}, {1, {1}}, {2, {2}}, {3, {3}}};
  EXPECT_THAT(choose_placement(four, {}, {.rank = 1, .world = 2})->cpus, ElementsAre(2, 3));
}

TEST(Placement, WhereItMakesNoDifferenceNothingIsChosen) {
  EXPECT_FALSE(choose_placement(kTwo, {}, {}));
  EXPECT_FALSE(choose_placement({kTwo[0]}, 0, {.rank = 1, .world = 2}));
  EXPECT_FALSE(choose_placement({}, {}, {.rank = 1, .world = 2}));
}

/// This machine's CPUs presented as two nodes; the affinity that the test changes is restored.
class PlaceProcess : public unidle::testing::MachineFiles {
 protected:
  PlaceProcess() {
    CPU_ZERO(&before_);
    sched_getaffinity(0, sizeof(before_), &before_);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) {
        cpus_.push_back(cpu);
      }
    }
  }
  ~PlaceProcess() override { sched_setaffinity(0, sizeof(before_), &before_); }

  void put_nodes(int count) {
    for (int node = 0; node < count; ++node) {
      std::string list;
      for (std::size_t i = 0; i < cpus_.size(); ++i) {
        if (static_cast<int>(i) % count == node) {
          list += (list.empty() ? "" : ",") + std::to_string(cpus_[i]);
        }
      }
      put("sys/devices/system/node/node" + std::to_string(node) + "/cpulist", list + "\n");
    }
  }
  static Config with(const std::string& numa) {
    return Config::from_text("workload: line\n", "line.yaml", {"cpu.numa=" + numa});
  }
  static int cpus_now() {
    cpu_set_t now;
    CPU_ZERO(&now);
    sched_getaffinity(0, sizeof(now), &now);
    return CPU_COUNT(&now);
  }

  cpu_set_t before_;
  std::vector<int> cpus_;
};

TEST_F(PlaceProcess, KeepsToItsNode) {
  if (cpus_.size() < 2) {
    GTEST_SKIP() << "there is one CPU";
  }
  put_nodes(2);
  const Placed placed = place_process(with("auto"), at::kCPU, {.rank = 1, .world = 2}, root());
  EXPECT_EQ(placed.in_force, "auto");
  EXPECT_EQ(placed.sharers, 1);
  EXPECT_EQ(cpus_now(), static_cast<int>(cpus_.size() / 2));
  EXPECT_LE(usable_cpus(2, placed.sharers), static_cast<int>(cpus_.size() / 2));
  // The second call finds only one node left.
  EXPECT_FALSE(place_process(with("auto"), at::kCPU, {.rank = 1, .world = 2}, root()).in_force);
}

TEST_F(PlaceProcess, ChangesNothingWhereItIsOffOrThereIsOneNode) {
  put_nodes(1);
  const Placed one = place_process(with("auto"), at::kCPU, {.rank = 1, .world = 2}, root());
  EXPECT_FALSE(one.in_force);
  EXPECT_EQ(one.sharers, 2);
  put_nodes(2);
  EXPECT_EQ(place_process(with("off"), at::kCPU, {.rank = 1, .world = 2}, root()).in_force, "off");
  EXPECT_FALSE(place_process(with("auto"), at::kCPU, {}, root()).in_force);
  EXPECT_EQ(cpus_now(), static_cast<int>(cpus_.size()));
}

}  // namespace
}  // namespace unidle::train
