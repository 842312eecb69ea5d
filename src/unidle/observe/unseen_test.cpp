#include "unidle/observe/unseen.h"

#include <gtest/gtest.h>

#include "unidle/base/testing/machine_files.h"

namespace unidle::observe {
namespace {

std::string words(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& word : all) {
    text += word + '\0';
  }
  return text;
}

constexpr const char* kShim = "/opt/unidle";
const std::string kOurs = words({"HOME=/root", "PYTHONPATH=/opt/unidle", "UNIDLE_PROBE_DIR=/tmp/probe"});

TEST(WhyUnseen, OptionsOfPython) {
  EXPECT_EQ(why_unseen(words({"/usr/bin/python3.12", "-I", "train.py"}), kOurs, kShim), UnseenReason::kIsolated);
  EXPECT_EQ(why_unseen(words({"python", "-uE", "-m", "train"}), kOurs, kShim), UnseenReason::kIsolated);
  EXPECT_EQ(why_unseen(words({"python", "-X", "dev", "-W", "ignore", "-S", "train.py"}), kOurs, kShim),
            UnseenReason::kNoSite);
}

TEST(WhyUnseen, OptionsOfTheScriptAreNotPythons) {
  EXPECT_EQ(why_unseen(words({"python", "train.py", "-I"}), kOurs, kShim), UnseenReason::kOther);
  EXPECT_EQ(why_unseen(words({"python", "-m", "train", "-E"}), kOurs, kShim), UnseenReason::kOther);
  EXPECT_EQ(why_unseen(words({"python", "-uc", "import sys", "-S"}), kOurs, kShim), UnseenReason::kOther);
  EXPECT_EQ(why_unseen(words({"python", "-XI", "train.py"}), kOurs, kShim), UnseenReason::kOther);
}

TEST(WhyUnseen, VariablesThatAreGone) {
  EXPECT_EQ(why_unseen(words({"python", "train.py"}), words({"HOME=/root"}), kShim), UnseenReason::kEnvironment);
  EXPECT_EQ(why_unseen(words({"python", "train.py"}), words({"UNIDLE_PROBE_DIR=/tmp/probe"}), kShim),
            UnseenReason::kEnvironment);
}

TEST(WhyUnseen, APathWithoutOurFolder) {
  const auto with_path = [](const std::string& path) {
    return why_unseen(words({"python", "train.py"}), words({"PYTHONPATH=" + path, "UNIDLE_PROBE_DIR=/tmp/probe"}),
                      kShim);
  };
  EXPECT_EQ(with_path(".."), UnseenReason::kPath);
  EXPECT_EQ(with_path("/opt/unidle2:/opt"), UnseenReason::kPath);
  EXPECT_EQ(with_path("..:/opt/unidle"), UnseenReason::kOther);
}

TEST(WhyUnseen, NoPython) {
  EXPECT_EQ(why_unseen(words({"./trainer", "-I"}), kOurs, kShim), UnseenReason::kNoPython);
  EXPECT_EQ(why_unseen("", "", kShim), UnseenReason::kNoPython);
}

class FindUnseen : public unidle::testing::MachineFiles {
 protected:
  void put_process(int pid, int parent, const std::string& arguments, const std::string& maps) const {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    put(folder + "stat", std::to_string(pid) + " (python) S " + std::to_string(parent) +
                             " 1 1 0 -1 4194304 1 2 3 4 0 0 0 0 20 0 3 0 555 1000000 10 18446744073709551615 1 1 1\n");
    put(folder + "cmdline", arguments);
    put(folder + "maps", maps);
    put(folder + "environ", kOurs);
  }
};

const std::string kTorch = "7f00 r-xp 0 0:0 1 /site-packages/torch/lib/libtorch_cpu.so\n";

TEST_F(FindUnseen, TheOneWithTorchThatDoesNotReport) {
  put_process(10, 1, words({"bash", "train.sh"}), "");
  put_process(11, 10, words({"python", "-I", "train.py", "--epochs", "3"}), kTorch);
  const auto found = find_unseen(10, {}, root());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->pid, 11);
  EXPECT_EQ(found->command, "python -I train.py --epochs");
  EXPECT_EQ(found->why, UnseenReason::kIsolated);
}

TEST_F(FindUnseen, NobodyWhereAllReportOrHaveNoTorch) {
  put_process(10, 1, words({"python", "tool.py"}), "7f00 r-xp 0 0:0 1 /usr/lib/libc.so.6\n");
  EXPECT_FALSE(find_unseen(10, {}, root()).has_value());
  put_process(11, 10, words({"python", "train.py"}), kTorch);
  put_process(12, 11, words({"python", "train.py"}), kTorch);  // a fork of process 11
  EXPECT_FALSE(find_unseen(10, {11}, root()).has_value());
  EXPECT_FALSE(find_unseen(99, {}, root()).has_value());
}

}  // namespace
}  // namespace unidle::observe
