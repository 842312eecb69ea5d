#include "unidle/diagnose/policy_file.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/sample_signals.h"

namespace unidle::diagnose {
namespace {

class PolicyFile : public ::testing::Test {
 protected:
  Policy read(const std::string& text) const {
    write_file_atomic(file(), text);
    return read_policy(file());
  }
  std::filesystem::path file() const { return folder_.path() / "policy.yaml"; }
  TemporaryFolder folder_;
};

TEST_F(PolicyFile, ReplacesWhatItNamesAndNothingElse) {
  const Policy policy = read("# ours\nwarning_share: 0.2\nmin_steps: 50\nbf16_capability: 9\n");
  Policy expected;
  expected.warning_share = 0.2;
  expected.min_steps = 50;
  expected.bf16_capability = 9;
  EXPECT_EQ(to_yaml(policy), to_yaml(expected));
  EXPECT_NE(to_yaml(policy), to_yaml(Policy{}));
}

TEST_F(PolicyFile, WhatIsWrittenIsRead) {
  Policy policy;
  policy.row_s = 0.125;
  policy.low_precision_parameters = 7;
  EXPECT_EQ(to_yaml(read(to_yaml(policy))), to_yaml(policy));
  EXPECT_EQ(read("{\"warning_share\": 0.25}").warning_share, 0.25);
  EXPECT_EQ(to_yaml(read("")), to_yaml(Policy{}));
  EXPECT_EQ(to_yaml(read("# nothing yet\n")), to_yaml(Policy{}));
}

TEST_F(PolicyFile, MistakesNameTheirLine) {
  struct Mistake {
    const char* text;
    const char* line;
  };
  for (const Mistake& mistake :
       {Mistake{"warning_share: 0.2\nwarning_shares: 0.3\n", ":2"}, Mistake{"warning_share: high\n", ":1"},
        Mistake{"warning_share: -0.1\n", ":1"}, Mistake{"min_steps: 2.5\n", ":1"}, Mistake{"min_steps: [1]\n", ":1"},
        Mistake{"min_steps: .inf\n", ":1"}, Mistake{"fp16_capability: 1e12\n", ":1"}, Mistake{"- 1\n", ":1"},
        Mistake{"\nmin_steps: 1\nmin_steps: 2\n", ":3"}, Mistake{"min_steps: \n", ":1"}, Mistake{"a: [\n", ""},
        Mistake{"0.2", ":1"}}) {
    try {
      read(mistake.text);
      FAIL() << mistake.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput) << mistake.text;
      EXPECT_TRUE(error.subject().starts_with(file().string() + mistake.line)) << error.subject();
      EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << mistake.text;
    }
  }
  EXPECT_THROW(read_policy(folder_.path() / "none.yaml"), Error);
}

TEST_F(PolicyFile, FixesGoByIt) {
  Signals signals = testing::healthy_cpu();
  signals.logging = LoggingFacts{100, 50, ""};
  signals.step = StepShares{.compute = 0.6, .sync = 0.4};
  signals.syncs_per_step = 2;
  std::set<std::string> rules;
  for (const Finding& finding : diagnose(signals, read("metrics_interval: 20\n")).findings) {
    for (const knobs::Change& fix : finding.fixes) {
      if (fix.knob == "metrics.interval") {
        EXPECT_EQ(fix.to, 20) << finding.id;
        rules.insert(finding.id);
      }
    }
  }
  EXPECT_EQ(rules, (std::set<std::string>{"logging-dominates", "sync-each-step"}));
}

TEST_F(PolicyFile, RulesGoByIt) {
  const Signals signals = testing::waiting_cpu(0.5);
  ASSERT_FALSE(diagnose(signals).findings.empty());
  ASSERT_NE(diagnose(signals).findings.front().severity, Severity::kInfo);
  for (const Finding& finding : diagnose(signals, read("warning_share: 0.99\ncritical_share: 0.999\n")).findings) {
    EXPECT_EQ(finding.severity, Severity::kInfo) << finding.id;
  }
}

}  // namespace
}  // namespace unidle::diagnose
