#include "unidle/traits/workload.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "unidle/base/error.h"

namespace unidle::traits {
namespace {

TEST(Workloads, HaveAFileEachThatIsNamedAsTheyAre) {
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(UNIDLE_SOURCE_DIR "/src/unidle/traits/workloads")) {
    names.insert(file.path().stem());
  }
  std::set<std::string> told;
  for (const Workload* workload : all_workloads()) {
    EXPECT_TRUE(told.insert(workload->name).second) << workload->name;
    EXPECT_EQ(find_workload(workload->name), workload);
    EXPECT_FALSE(workload->summary.empty()) << workload->name;
  }
  EXPECT_EQ(told, names);
}

TEST(Workloads, AnotherNameIsNone) {
  EXPECT_THROW(the_workload("supperres"), Error);
  EXPECT_EQ(find_workload("supperres"), nullptr);
  EXPECT_EQ(find_workload(""), nullptr);
}

TEST(Workloads, MessagesNameThemAllInOrder) { EXPECT_TRUE(workload_names().starts_with("keypoint, protein")); }

}  // namespace
}  // namespace unidle::traits
