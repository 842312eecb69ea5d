#include "unidle/telemetry/numa.h"

#include <gmock/gmock.h>

#include "unidle/base/testing/machine_files.h"

namespace unidle::telemetry {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using NumaTest = unidle::testing::MachineFiles;

TEST_F(NumaTest, NodesHaveTheirCpus) {
  EXPECT_THAT(numa_nodes(root()), IsEmpty());
  put("sys/devices/system/node/node10/cpulist", "2-3,6\n");
  put("sys/devices/system/node/node2/cpulist", "0-1\n");
  put("sys/devices/system/node/node3/cpulist", "\n");  // memory only
  put("sys/devices/system/node/nodes/cpulist", "9\n");
  put("sys/devices/system/node/possible", "0-10\n");
  const std::vector<NumaNode> nodes = numa_nodes(root());
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].number, 2);
  EXPECT_THAT(nodes[0].cpus, ElementsAre(0, 1));
  EXPECT_EQ(nodes[1].number, 10);
  EXPECT_THAT(nodes[1].cpus, ElementsAre(2, 3, 6));

  const std::vector<NumaNode> some = nodes_within(nodes, {0, 2, 3});
  ASSERT_EQ(some.size(), 2U);
  EXPECT_THAT(some[0].cpus, ElementsAre(0));
  EXPECT_THAT(some[1].cpus, ElementsAre(2, 3));
  EXPECT_EQ(nodes_within(nodes, {6}).size(), 1U);
}

}  // namespace
}  // namespace unidle::telemetry
