#include "unidle/diagnose/nodes.h"

#include <gmock/gmock.h>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/base/testing/thrown.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/sample_signals.h"
#include "unidle/record/record.h"

namespace unidle::diagnose::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;
using ::testing::SizeIs;
using unidle::testing::code_of;

/// A node with two of the job's ranks: `work_s` of its steps of 100 ms is its own work.
NodeSignals node(const std::string& name, int first_rank, double work_s) {
  NodeSignals node{name, healthy_cpu(), std::nullopt};
  node.signals.parallel = "ddp";
  node.signals.samples_per_s = 100;
  for (const int rank : {first_rank, first_rank + 1}) {
    node.signals.ranks.push_back({rank, 0.1, 0.1 - work_s, 1000 + rank});
  }
  return node;
}

const Finding* found(const Diagnosis& diagnosis, std::string_view id) {
  const auto at = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                               [&](const Finding& finding) { return finding.id == id; });
  return at == diagnosis.findings.end() ? nullptr : &*at;
}

TEST(Nodes, AStragglerIsFoundAcrossNodesAndNamed) {
  const NodeSignals quick = node("n1", 0, 0.04);
  const NodeSignals slow = node("n2", 2, 0.09);
  // A single node does not show it.
  EXPECT_EQ(found(diagnose(slow.signals), "straggler-rank"), nullptr);
  const Diagnosis diagnosis = diagnose_nodes({quick, slow});
  const Finding* straggler = found(diagnosis, "straggler-rank");
  ASSERT_NE(straggler, nullptr);
  EXPECT_THAT(straggler->evidence, Contains(AllOf(HasSubstr("rank 2"), HasSubstr("on node n2"))));
  EXPECT_EQ(diagnosis.node, "n2");
}

TEST(Nodes, SamplesAddUp) {
  const Diagnosis diagnosis = diagnose_nodes({node("n1", 0, 0.09), node("n2", 2, 0.09), node("n3", 4, 0.09)});
  EXPECT_THAT(diagnosis.samples_per_s, Optional(DoubleEq(300)));
  ASSERT_THAT(diagnosis.nodes, SizeIs(3));
  EXPECT_THAT(diagnosis.nodes[1].samples_per_s, Optional(DoubleEq(100)));
  EXPECT_EQ(found(diagnosis, "straggler-rank"), nullptr);
}

TEST(Nodes, TheFirstToFailDecides) {
  NodeSignals first = node("n1", 0, 0.09);
  NodeSignals second = node("n2", 2, 0.04);
  for (NodeSignals* one : {&first, &second}) {
    one->signals.outcome = Outcome::kFailed;
    one->signals.exit_code = 1;
  }
  first.ended = 1010;  // as a consequence of the other node's end
  second.ended = 1000;
  EXPECT_EQ(diagnose_nodes({first, second}).node, "n2");
  second.ended.reset();
  EXPECT_EQ(diagnose_nodes({first, second}).node, "n1");
  first.signals.outcome = Outcome::kCompleted;
  const Diagnosis diagnosis = diagnose_nodes({first, second});
  EXPECT_EQ(diagnosis.node, "n2");
  EXPECT_EQ(diagnosis.verdict, Verdict::kFailed);
}

TEST(Nodes, WhoOnlyLostItsPeerDoesNotDecide) {
  NodeSignals victim = node("n1", 0, 0.09);
  NodeSignals culprit = node("n2", 2, 0.04);
  for (NodeSignals* one : {&victim, &culprit}) {
    one->signals.outcome = Outcome::kFailed;
    one->signals.exit_code = 1;
  }
  victim.ended = 1000;  // to the second, as in records
  culprit.ended = 1000.3;
  victim.signals.exception = "RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.2]:4711";
  culprit.signals.exception = "ValueError: no such class";
  EXPECT_EQ(diagnose_nodes({victim, culprit}).node, "n2");
}

TEST(Nodes, WhatIsWrongOnOneNodeIsToldWithItsName) {
  const NodeSignals well = node("n1", 0, 0.09);
  NodeSignals ill = node("n2", 2, 0.09);
  ill.signals.device_kind = "cuda";
  ill.signals.gpu.alloc_retries = 1'000'000;
  const Diagnosis alone = diagnose(ill.signals);
  ASSERT_NE(found(alone, "allocator-retries"), nullptr);
  const Diagnosis diagnosis = diagnose_nodes({well, ill});
  ASSERT_EQ(diagnosis.node, "n1");
  const Finding* finding = found(diagnosis, "allocator-retries");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("on node n2")));
  EXPECT_EQ(diagnosis.verdict, alone.verdict);
}

TEST(Nodes, WithoutRanksTheFirstThatIsNotHealthyDecides) {
  const NodeSignals well{"n1", healthy_cpu(), std::nullopt};
  const NodeSignals ill{"n2", waiting_cpu(0.6), std::nullopt};
  const Diagnosis diagnosis = diagnose_nodes({well, ill});
  EXPECT_EQ(diagnosis.node, "n2");
  EXPECT_EQ(diagnosis.verdict, Verdict::kInputBound);
  EXPECT_EQ(diagnose_nodes({well, well}).verdict, Verdict::kHealthy);
}

TEST(Nodes, TheTextNamesThem) {
  const Diagnosis diagnosis =
      diagnose_nodes({{"n1", healthy_cpu(), std::nullopt}, {"n2", waiting_cpu(0.6), std::nullopt}});
  const std::string text = to_text(diagnosis, 100, false);
  EXPECT_THAT(text, AllOf(HasSubstr("2 nodes:"), HasSubstr("n1: healthy"), HasSubstr("n2: input-bound")));
  EXPECT_THAT(to_text(diagnosis, 100, false, Language::kChinese), Not(HasSubstr("nodes:")));
  EXPECT_THAT(to_text(diagnose(healthy_cpu()), 100, false), Not(HasSubstr("nodes")));
}

class RecordsOfNodes : public ::testing::Test {
 protected:
  fs::path make(const std::string& name) {
    record::Writer writer(folder_.path() / name);
    writer.set_meta(record::meta::kStartedUtc, "2026-11-01T12:00:00Z");
    return folder_.path() / name;
  }
  TemporaryFolder folder_;
};

TEST_F(RecordsOfNodes, AreInTheFoldersOfAFolder) {
  EXPECT_THAT(records_of_nodes(folder_.path()), IsEmpty());
  EXPECT_THAT(records_of_nodes(folder_.path() / "nothing"), IsEmpty());
  const fs::path second = make("n2");
  const fs::path first = make("n1");
  make_folders(folder_.path() / "plots");
  EXPECT_THAT(records_of_nodes(folder_.path()), ElementsAre(first, second));
  EXPECT_THAT(records_of_nodes(first), ElementsAre(first));
}

TEST_F(RecordsOfNodes, OneThatCannotBeReadIsTold) {
  const fs::path whole = make("n1");
  const fs::path damaged = make("n2");
  write_file_atomic(damaged / "record.db", "text");
  const Diagnosis diagnosis = diagnose_records({whole, damaged});
  EXPECT_EQ(diagnosis.node, "n1");
  ASSERT_THAT(diagnosis.nodes, SizeIs(2));
  EXPECT_EQ(diagnosis.nodes[1].node, "n2");
  EXPECT_THAT(diagnosis.nodes[1].problem, Not(IsEmpty()));
  EXPECT_THAT(to_text(diagnosis, 100, false), HasSubstr("n2: its record cannot be read"));
  EXPECT_EQ(code_of([&] { diagnose_records({damaged, damaged}); }), ErrorCode::kInput);
}

}  // namespace
}  // namespace unidle::diagnose::testing
