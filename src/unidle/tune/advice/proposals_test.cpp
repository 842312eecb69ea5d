#include "unidle/tune/advice/proposals.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "unidle/tune/advice/advise.h"

namespace unidle::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Hardware cpu_machine(double cpus) {
  Hardware hardware;
  hardware.cpus = cpus;
  return hardware;
}

Hardware gpu_machine(int capability) {
  Hardware hardware = cpu_machine(8);
  hardware.gpus = 1;
  hardware.capability = capability;
  hardware.gpu_name = "Test GPU";
  hardware.gpu_memory_bytes = 80ULL << 30;
  return hardware;
}

knobs::Settings advice(const std::string& yaml, const std::string& workload, const Hardware& hardware,
                       bool only_present = false) {
  knobs::Settings changes;
  for (const knobs::Change& change :
       advise(knobs::ConfigFile::from_text(yaml, "c.yaml"), traits::find_workload(workload), hardware, only_present)) {
    EXPECT_FALSE(changes.contains(change.knob)) << change.knob << " twice";
    changes.set(change.knob, *change.to);
    EXPECT_NE(change.from, change.to) << change.knob;
    EXPECT_FALSE(change.reason.empty());
  }
  return changes;
}

constexpr const char* kNaive =
    "workload: superres\nbatch: {size: 2, accumulation: 8}\nloader: {workers: 0}\nprecision: {amp: off}\n";

TEST(Proposals, LargerMicroBatchesDivideTheEffectiveBatch) {
  EXPECT_THAT(larger_micro_batches(2, 8), ElementsAre(4, 8, 16));
  EXPECT_THAT(larger_micro_batches(3, 4), ElementsAre(4, 6, 12));
  EXPECT_THAT(larger_micro_batches(4, 1), IsEmpty());
  EXPECT_THAT(larger_micro_batches(0, 0), IsEmpty());
  EXPECT_THAT(larger_micro_batches(4, 1'000'000'000'000), IsEmpty())
      << "nobody trains so, and to try all takes for ever";
  EXPECT_THAT(larger_micro_batches(1'000'000'000'000, 1'000'000'000'000), IsEmpty());
}

TEST(Advise, FeaturesStayOnDiskWhereTheWorkloadCanKeepThemThere) {
  EXPECT_EQ(advice("workload: protein\n", "protein", cpu_machine(4)).at("cache.features"), "disk");
  EXPECT_FALSE(advice("cache.features: memory\n", "protein", cpu_machine(4)).contains("cache.features")) << "a choice";
}

TEST(Advise, OnACpuChangesNothingThatNeedsAGpu) {
  const auto changes = advice(kNaive, "superres", cpu_machine(4));
  EXPECT_EQ(changes.at("loader.workers"), 2);
  EXPECT_EQ(changes.at("layout.channels_last"), true);
  EXPECT_EQ(changes.at("cache.features"), "memory");
  for (const char* knob : {"loader.pin_memory", "transfer.non_blocking", "precision.amp", "precision.tf32",
                           "cudnn.benchmark", "compile.mode", "batch.size", "optimizer.lr", "model.width"}) {
    EXPECT_FALSE(changes.contains(knob)) << knob;
  }
}

TEST(Advise, TakesThePrecisionThatTheGpuHas) {
  EXPECT_EQ(advice(kNaive, "superres", gpu_machine(90)).at("precision.amp"), "bf16");
  EXPECT_EQ(advice(kNaive, "superres", gpu_machine(90)).at("precision.tf32"), true);
  EXPECT_EQ(advice(kNaive, "superres", gpu_machine(70)).at("precision.amp"), "fp16");
  EXPECT_FALSE(advice(kNaive, "superres", gpu_machine(70)).contains("precision.tf32"));
  EXPECT_FALSE(advice(kNaive, "superres", gpu_machine(61)).contains("precision.amp"));
}

TEST(Advise, HoldsTheEffectiveBatch) {
  const auto changes = advice(kNaive, "superres", gpu_machine(90));
  EXPECT_EQ(changes.at("batch.size"), 16);
  EXPECT_EQ(changes.at("batch.accumulation"), 1);
}

TEST(Advise, FewerWorkersThanCpus) {
  EXPECT_EQ(advice("loader: {workers: 28}\n", "keypoint", gpu_machine(90)).at("loader.workers"), 7);
  EXPECT_FALSE(advice("loader: {workers: 4}\n", "keypoint", gpu_machine(90)).contains("loader.workers"));
  EXPECT_EQ(advice("loader: {workers: 0}\n", "keypoint", cpu_machine(1)).at("loader.workers"), 1);
}

TEST(Advise, AForeignProgramGetsNoNewKeys) {
  const auto changes = advice("loader: {workers: 0}\n", "", gpu_machine(90), true);
  EXPECT_EQ(changes.size(), 1u);
  EXPECT_TRUE(changes.contains("loader.workers"));
}

TEST(Advise, LeavesOutFlushesOfMemory) {
  EXPECT_EQ(advice("memory.flush_interval: 1\n", "protein", cpu_machine(2)).at("memory.flush_interval"), 0);
  EXPECT_FALSE(advice("workload: protein\n", "protein", cpu_machine(2)).contains("memory.flush_interval"));
  EXPECT_FALSE(advice("empty_cache_freq: 10\n", "", cpu_machine(2), true).contains("memory.flush_interval"));
}

TEST(Proposals, NothingSemantic) {
  const knobs::Settings settings = {{"batch.size", 4}, {"optimizer.lr", 0.001}};
  for (const Proposal& proposal : propose(settings, traits::find_workload("superres"), cpu_machine(2), {})) {
    EXPECT_FALSE(knobs::is_semantic(proposal.changes)) << proposal.reason;
  }
}

TEST(Advise, ExplainsEveryChangedLine) {
  const std::string before = "workload: superres\nloader:\n  workers: 0  # none\nseed: 1\n";
  knobs::ConfigFile config = knobs::ConfigFile::from_text(before, "c.yaml");
  std::vector<knobs::Change> changes = {knobs::change_of("loader.workers", 0, 2, "the step waits"),
                                        knobs::change_of("cache.features", "off", "memory", "the same every epoch")};
  changes[0].gain = 1.5;
  apply_changes(changes, config);
  const std::string diff = explained_diff(before, config, changes, "c.yaml");
  EXPECT_THAT(diff, HasSubstr("+  workers: 2  # none\n    # loader.workers: the step waits (1.5x)\n"));
  EXPECT_THAT(diff, HasSubstr("+  features: memory\n    # cache.features: the same every epoch\n"));
}

double promise_of_no_workers(long long workers, const Hardware& hardware) {
  for (const Proposal& proposal : propose({{"loader.workers", workers}}, nullptr, hardware, {})) {
    if (proposal.changes == knobs::Settings{{"loader.workers", 0}}) {
      return proposal.promise;
    }
  }
  return 0;
}

TEST(Proposals, NoWorkersAreTriedAsWell) {
  const double of_two = promise_of_no_workers(2, cpu_machine(4));
  EXPECT_GT(of_two, 0);
  EXPECT_GT(promise_of_no_workers(10, cpu_machine(2)), of_two) << "they also take the CPUs from the step";
  EXPECT_GT(promise_of_no_workers(10, gpu_machine(90)), 0);
  EXPECT_EQ(promise_of_no_workers(0, cpu_machine(2)), 0);
}

}  // namespace
}  // namespace unidle::tune
