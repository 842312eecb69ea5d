// Rules about the loader and its workers, and about CPUs.
#include <gmock/gmock.h>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LoaderOversubscribed, WorkersThatNoCpuHasUseForAreAHint) {
  Signals signals = waiting_cpu(0.05);  // one of four CPUs is used
  set_effective(signals, "loader.workers", "28");
  const Finding finding = fired("loader-oversubscribed", signals);
  EXPECT_EQ(finding.severity, Severity::kInfo);
  EXPECT_FALSE(finding.share);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("28 workers share 4 CPUs")));
  EXPECT_EQ(fix_of(finding, "loader.workers")->to, 3);
  set_effective(signals, "loader.workers", "16");
  EXPECT_TRUE(silent("loader-oversubscribed", signals));
}

/// Four workers on two CPUs, of which the run uses `own` and all processes together two.
Signals beside_others(double own, double run_delay) {
  Signals signals = waiting_cpu(0.6);
  set_effective(signals, "loader.workers", "4");
  signals.loader_busy = 0.95;
  signals.cpus_allowed = signals.cpus_online = signals.host_cpus_used = 2;
  signals.cpus_used = own;
  signals.others_cpus_used = 2 - own;
  signals.run_delay = run_delay;
  return signals;
}

TEST(LoaderOversubscribed, WorkersAreNotBlamedForWhatOthersTake) {
  EXPECT_EQ(missing("loader-oversubscribed", beside_others(0.44, 1.5)),
            "the workers' pace while no other process takes the CPUs");
  EXPECT_TRUE(silent("loader-oversubscribed", beside_others(0.44, 0.05))) << "they wait for something else";
  Signals unknown = beside_others(0.44, 0);
  unknown.run_delay.reset();
  EXPECT_TRUE(silent("loader-oversubscribed", unknown));
}

TEST(LoaderOversubscribed, FewerWorkersAreNotProposedForSlowSamples) {
  Signals signals = beside_others(1.95, 2);
  signals.batch_samples = 8;
  signals.samples = SampleFacts{};
  signals.samples->count = 100;
  signals.samples->total_s = 400;
  signals.samples->cpu_s = 100 * *signals.step_s;  // one worker needs eight steps for a batch
  EXPECT_TRUE(silent("loader-oversubscribed", signals));
  signals.samples->cpu_s = 10 * *signals.step_s;
  EXPECT_EQ(fix_of(fired("loader-oversubscribed", signals), "loader.workers")->to, 1);
}

TEST(LoaderOversubscribed, TellsTheRunsOwnCpusFromThoseOfOthers) {
  const Finding alone = fired("loader-oversubscribed", beside_others(1.95, 2));
  EXPECT_THAT(alone.evidence, Contains("the run uses 1.95 of its 2 CPUs"));
  const Finding beside = fired("loader-oversubscribed", beside_others(1.6, 2));
  EXPECT_THAT(beside.evidence, Contains("the run uses 1.6 of its 2 CPUs, and other processes use 0.4"));
}

TEST(LoaderNoWorkers, CpusOfOthersThatGiveWayCanBeUsed) {
  Signals signals = beside_others(0.1, 0.05);  // its samples wait for something that needs no CPU
  set_input(signals, 0.9);
  set_effective(signals, "loader.workers", "0");
  const Finding gives_way = fired("loader-no-workers", signals);
  EXPECT_GT(*gives_way.speedup_bound, 1.9) << "by two workers";
  EXPECT_TRUE(fix_of(gives_way, "loader.workers")->to);
  signals.run_delay = 0.9;  // a thread that is ready gets a tenth of a CPU
  const Finding crowded = fired("loader-no-workers", signals);
  EXPECT_EQ(crowded.severity, Severity::kInfo);
  EXPECT_FALSE(crowded.speedup_bound);
}

/// One sample in fifty takes a hundred times as long, by the wall.
Signals with_tail(std::optional<double> run_delay_s, double cpu_s) {
  Signals signals = waiting_cpu(0.6);
  signals.cpus_used = 0.5;
  signals.cpus_online = signals.cpus_allowed = signals.host_cpus_used = 2;
  SampleFacts& samples = signals.samples.emplace();
  samples.count = 1000;
  samples.total_s = 6;
  samples.p50_s = 2e-3;
  samples.p99_s = 0.2;
  samples.cpu_s = cpu_s;
  samples.wait_s = 6 - cpu_s;
  samples.run_delay_s = run_delay_s;
  return signals;
}

TEST(DatasetHeavyTail, TellsPreemptionFromWaiting) {
  EXPECT_FALSE(fired("dataset-heavy-tail", with_tail(0.1, 5.5)).evidence.empty()) << "samples that compute";
  EXPECT_FALSE(fired("dataset-heavy-tail", with_tail(0.1, 2)).evidence.empty()) << "samples that wait for a network";
  EXPECT_TRUE(silent("dataset-heavy-tail", with_tail(3.9, 2))) << "all of the tail is standing ready";
  EXPECT_FALSE(fired("dataset-heavy-tail", with_tail(3.1, 2.8)).evidence.empty()) << "CPU time is certain";
  EXPECT_EQ(missing("dataset-heavy-tail", with_tail(3.1, 1.5)),
            "whether slow samples only waited for a CPU, because the CPUs were full")
      << "the rest may be waiting for a thread that stood ready";
  EXPECT_EQ(missing("dataset-heavy-tail", with_tail({}, 2)),
            "whether slow samples only waited for a CPU, because the CPUs were full");
  Signals quiet = with_tail({}, 2);
  quiet.host_cpus_used = 0.6;
  EXPECT_FALSE(fired("dataset-heavy-tail", quiet).evidence.empty()) << "there were CPUs for them";
}

TEST(StorageBound, SamplesThatStandReadyDoNotWaitForADisk) {
  Signals signals = with_tail(0.1, 1);
  signals.read_bytes_per_s = 1e8;
  EXPECT_NEAR(*fired("storage-bound", signals).share, 0.6 * 0.9 * 4.9 / 6, 1e-3) << "the machine is full as well";
  signals.samples->run_delay_s = 4.5;
  EXPECT_TRUE(silent("storage-bound", signals));
}

TEST(LoaderNoWorkers, FiresWithTheShareOfTheWall) {
  const Finding finding = fired("loader-no-workers", waiting_cpu(0.6));
  EXPECT_NEAR(*finding.share, 0.6 * 0.9, 1e-9);
  EXPECT_EQ(finding.severity, Severity::kCritical);
  EXPECT_EQ(finding.where, "naive.yaml:6");
  const knobs::Change* fix = fix_of(finding, "loader.workers");
  ASSERT_NE(fix, nullptr);
  EXPECT_EQ(fix->from, 0);
  EXPECT_EQ(fix->to, 2);  // 54 ms of work beside 36 ms of the rest
  EXPECT_EQ(fix->knob_class, knobs::KnobClass::kExact);
}

// Like prefetch_generator: the thread works while the step runs, and still does not keep up.
TEST(LoaderNoWorkers, AThreadThatHandsBatchesOnIsNotTheTrainingThread) {
  Signals signals = waiting_cpu(0.3);
  signals.loader.emplace().by_thread = true;
  const Finding finding = fired("loader-no-workers", signals);
  EXPECT_THAT(finding.evidence, ::testing::Contains(HasSubstr("one thread makes the samples and passes them on")));
  EXPECT_EQ(fix_of(finding, "loader.workers")->to, 2) << "its work is a whole step of 90 ms, behind 63 ms of the rest";
}

TEST(LoaderNoWorkers, LeavesOneCpuAndProposesNoWorkersThatGainNothing) {
  Signals signals = waiting_cpu(0.9);
  EXPECT_EQ(fix_of(fired("loader-no-workers", signals), "loader.workers")->to, 3);
  signals.cpus_allowed = 1;
  const Finding finding = fired("loader-no-workers", signals);
  EXPECT_EQ(finding.fixes.front().to, std::nullopt);
  EXPECT_TRUE(finding.fixes.front().in_code);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_NEAR(*finding.speedup_bound, amdahl(*finding.share), 1e-9) << "of samples that cost nothing";
  signals.loader.emplace();
  signals.loader->dataset_where = "data.py:9";
  EXPECT_EQ(fired("loader-no-workers", signals).where, "data.py:9");
  signals.loader->collate_where = "data.py:30";
  signals.samples.emplace();
  signals.samples->total_s = 1;
  signals.samples->collate_s = 9;
  EXPECT_EQ(fired("loader-no-workers", signals).where, "data.py:30");
}

TEST(LoaderNoWorkers, SamplesThatWaitNeedNoCpuEach) {
  Signals signals = waiting_cpu(0.9);
  signals.samples.emplace();
  signals.samples->cpu_s = 1;
  signals.samples->wait_s = 9;
  EXPECT_EQ(fix_of(fired("loader-no-workers", signals), "loader.workers")->to, 9) << "what hides the work";
  signals.cpus_allowed = 2;
  EXPECT_EQ(fix_of(fired("loader-no-workers", signals), "loader.workers")->to, 4);
  Policy policy;
  policy.workers_per_cpu = 2;
  EXPECT_EQ(fix_of(std::get<Finding>(ask("loader-no-workers", signals, policy)), "loader.workers")->to, 2);
  signals.samples->cpu_s = 8;
  signals.samples->wait_s = 2;
  EXPECT_EQ(fix_of(fired("loader-no-workers", signals), "loader.workers")->to, 2) << "the training thread mostly waits";
}

TEST(LoaderRespawn, CountsTheStartsForValidation) {
  Signals signals = waiting_cpu(0.15);
  set_effective(signals, "loader.workers", "2");
  set_effective(signals, "loader.persistent_workers", "false");
  signals.loader.emplace();
  signals.loader->workers = 2;
  signals.loader->persistent_workers = false;
  signals.loader->starts = 2;
  signals.loader->start_wait_s = 0.14 * signals.wall_s;
  EXPECT_TRUE(silent("loader-respawn", signals)) << "one start is needed";
  signals.time.validate = 0.2 * signals.wall_s;
  signals.validation_wait_s = 0.2 * signals.wall_s;
  EXPECT_NEAR(*fired("loader-respawn", signals).share, 0.17, 0.01);
  signals.loader->start_wait_s = 0.05 * signals.wall_s;
  EXPECT_TRUE(silent("loader-respawn", signals)) << "most of the wait is for something else";
}

TEST(LoaderNoWorkers, NearMissIsSilent) {
  EXPECT_TRUE(silent("loader-no-workers", waiting_cpu(0.09)));
  Signals one_worker = waiting_cpu(0.6);
  set_effective(one_worker, "loader.workers", "1");
  EXPECT_TRUE(silent("loader-no-workers", one_worker));
}

// Importing the framework takes half of a short trial.
TEST(LoaderNoWorkers, AShortTrialIsJudgedByWhatALongRunHas) {
  Signals trial = waiting_cpu(0.15);
  trial.wall_s = 20;
  trial.time = {.startup = 10, .train = 10, .validate = 0, .checkpoint = 0, .other = 0};
  EXPECT_NEAR(*fired("loader-no-workers", trial).share, 0.075, 1e-9) << "of the run as it was";
  trial.wall_s = 400;
  trial.time = {.startup = 200, .train = 200, .validate = 0, .checkpoint = 0, .other = 0};
  EXPECT_TRUE(silent("loader-no-workers", trial)) << "a start of minutes is paid by every run";
}

TEST(LoaderNoWorkers, MissingIsNotZero) {
  Signals signals = waiting_cpu(0.6);
  signals.settings.erase("loader.workers");
  EXPECT_THAT(missing("loader-no-workers", signals), HasSubstr("worker count"));

  signals = waiting_cpu(0.6);
  signals.step.reset();
  EXPECT_THAT(missing("loader-no-workers", signals), HasSubstr("steps"));

  EXPECT_TRUE(silent("loader-no-workers", waiting_cpu(0)));  // measured zero
}

TEST(LoaderNoWorkers, FewStepsSayNothing) {
  Signals signals = waiting_cpu(0.6);
  signals.steps = 4;
  EXPECT_THAT(missing("loader-no-workers", signals), HasSubstr("4 seen"));
}

TEST(LoaderNoWorkers, OnOneCpuWorkersHideNothing) {
  Signals signals = waiting_cpu(0.6);
  signals.cpus_allowed = 1;
  const Finding finding = fired("loader-no-workers", signals);
  EXPECT_TRUE(finding.fixes.front().in_code) << "no workers";
  EXPECT_NEAR(*finding.speedup_bound, amdahl(*finding.share), 1e-9);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_EQ(finding.evidence.front(), "workers would gain nothing on these CPUs");
}

TEST(LoaderNoWorkers, OnACpuThatComputeFillsTheBoundIsTheWorkOverTheCpus) {
  Signals signals = waiting_cpu(0.5);
  signals.cpus_allowed = 2;
  signals.cpus_used = 1.5;  // one CPU while it waits, both while it computes
  const Finding finding = fired("loader-no-workers", signals);
  // A step shrinks from 1 to 0.75; training is 0.9 of the run.
  EXPECT_NEAR(*finding.speedup_bound, 1 / (0.1 + 0.9 * 0.75), 1e-9);
}

TEST(LoaderNoWorkers, WithFreeCpusTheBoundIsAmdahls) {
  const Finding finding = fired("loader-no-workers", waiting_cpu(0.5));
  EXPECT_NEAR(*finding.speedup_bound, amdahl(0.45), 1e-9);
}

TEST(LoaderNoWorkers, OnAGpuTheLoaderHasTheCpusForItself) {
  Signals signals = healthy_gpu();
  signals.device_busy = 0.2;
  set_effective(signals, "loader.workers", "0");
  set_input(signals, 0.5);
  EXPECT_NEAR(*fired("loader-no-workers", signals).speedup_bound, amdahl(0.45), 1e-9);
  // Three quarters of the step on one thread are still 3/4 / 2 CPUs, more than the remaining quarter.
  set_input(signals, 0.75);
  signals.cpus_allowed = 2;
  EXPECT_NEAR(*fired("loader-no-workers", signals).speedup_bound, amdahl(0.9 * (1 - 0.375)), 1e-9);
}

TEST(LoaderNoWorkers, MentionsTheCacheWhenEpochsRepeat) {
  Signals signals = waiting_cpu(0.6);
  EXPECT_EQ(fix_of(fired("loader-no-workers", signals), "cache.features"), nullptr);  // already on
  set_effective(signals, "cache.features", "off");
  ASSERT_NE(fix_of(fired("loader-no-workers", signals), "cache.features"), nullptr);
  signals.epochs = 0.8;
  EXPECT_EQ(fix_of(fired("loader-no-workers", signals), "cache.features"), nullptr);
}

Signals too_few() {
  Signals signals = healthy_cpu();
  set_effective(signals, "loader.workers", "1");
  set_input(signals, 0.5);
  signals.loader_busy = 0.98;
  signals.cpus_used = 2;
  return signals;
}

TEST(LoaderTooFewWorkers, FiresWhenWorkersAreBusyAndCpusFree) {
  const Finding finding = fired("loader-too-few-workers", too_few());
  EXPECT_NEAR(*finding.share, 0.45, 1e-9);
  EXPECT_EQ(fix_of(finding, "loader.workers")->from, 1);
  EXPECT_EQ(fix_of(finding, "loader.workers")->to, 2);
}

TEST(LoaderTooFewWorkers, NearMissesAreSilent) {
  Signals signals = too_few();
  signals.loader_busy = 0.8;
  EXPECT_TRUE(silent("loader-too-few-workers", signals));
  signals = too_few();
  signals.cpus_used = 3.5;
  EXPECT_TRUE(silent("loader-too-few-workers", signals));
  signals = too_few();
  set_effective(signals, "loader.workers", "0");
  EXPECT_TRUE(silent("loader-too-few-workers", signals));
  signals = too_few();
  set_input(signals, 0.1);
  EXPECT_TRUE(silent("loader-too-few-workers", signals));
}

TEST(LoaderTooFewWorkers, MissingIsNotZero) {
  Signals signals = too_few();
  signals.loader_busy.reset();
  EXPECT_THAT(missing("loader-too-few-workers", signals), HasSubstr("busy"));
  signals.loader_busy = 0;
  EXPECT_TRUE(silent("loader-too-few-workers", signals));
  signals = too_few();
  signals.cpus_used.reset();
  EXPECT_THAT(missing("loader-too-few-workers", signals), HasSubstr("CPUs"));
}

TEST(LoaderStages, TheLimitingOneComesFirst) {
  Signals signals = waiting_cpu(0.6);
  EXPECT_THAT(fired("loader-no-workers", signals).evidence, Not(Contains(HasSubstr("spend their time on"))));
  signals.loader_stages_s = {1, 7, 2, 0};
  EXPECT_THAT(fired("loader-no-workers", signals).evidence,
              Contains(HasSubstr("decoding pictures 70 %, changing pictures 20 %, reading files 10 %")));
  signals.loader_stages_s = {0, 0, 0, 0};
  EXPECT_THAT(fired("loader-no-workers", signals).evidence, Not(Contains(HasSubstr("spend their time on"))));
}

TEST(LoaderSource, TakesThePlaceOfADataSetOrNamesWhatIsLeft) {
  Signals signals = waiting_cpu(0.6);
  signals.loader.emplace();
  signals.loader->where = "train.py:61";
  const auto first = [&] { return diagnose::diagnose(signals).findings.at(0); };
  EXPECT_EQ(first().id, "loader-no-workers");
  EXPECT_EQ(fix_of(first(), "loader.replace"), nullptr);
  SourceFacts& source = signals.loader->source.emplace();
  source.name = "arrays";
  source.code = "unidle.data.arrays(self.x)";
  source.patch = "--- train.py\n";
  const Finding known = first();
  EXPECT_THAT(known.evidence, Contains(HasSubstr("(train.py:61): unidle.data.arrays(self.x)")));
  const knobs::Change* fix = fix_of(known, "loader.replace");
  ASSERT_NE(fix, nullptr);
  EXPECT_EQ(fix->patch, "--- train.py\n");
  EXPECT_EQ(fix->from, false);
  EXPECT_EQ(fix->knob_class, knobs::KnobClass::kNumeric);
  EXPECT_TRUE(fix->by_hand) << "no command of ours applies it";

  signals.loader->source = SourceFacts{.name = "table",
                                       .code = "unidle.data.table(...)",
                                       .where = "data.py:9",
                                       .left = {"which columns", "what else"},
                                       .note = "another",
                                       .patch = "--- train.py\n"};
  const Finding left = first();
  EXPECT_THAT(left.evidence, Contains(HasSubstr("(data.py:9): unidle.data.table(...); left to you: which columns; "
                                                "what else")));
  EXPECT_THAT(left.evidence, Contains("another"));
  EXPECT_EQ(fix_of(left, "loader.replace"), nullptr);
}

Signals computing(double threads, double allowed) {
  Signals signals = healthy_cpu();
  set_effective(signals, "cpu.threads", std::to_string(static_cast<int>(threads)));
  signals.cpus_online = 4;
  signals.cpus_allowed = allowed;
  signals.cpus_used = allowed;
  return signals;
}

TEST(LoaderNoWorkers, ALoaderOfThePackageIsToldInItsOwnWords) {
  Signals signals = waiting_cpu(0.6);
  signals.epochs = 20;
  signals.loader.emplace().made_with = "unidle";
  set_effective(signals, "cache.features", "off");
  const Finding finding = fired("loader-no-workers", signals);
  const knobs::Change* fix = fix_of(finding, "loader.workers");
  ASSERT_NE(fix, nullptr);
  EXPECT_THAT(fix->reason, HasSubstr("unidle.data.Loader(..., workers=2)"));
  EXPECT_FALSE(fix->by_hand);
  EXPECT_EQ(fix_of(finding, "cache.features"), nullptr) << "it keeps no samples";

  signals.loader->made_with = "unidle.wrap";  // threads would share the program's data set
  EXPECT_TRUE(fix_of(fired("loader-no-workers", signals), "loader.workers")->by_hand);
  signals.loader->made_with = "torch";
  const Finding of_torch = fired("loader-no-workers", signals);
  EXPECT_THAT(fix_of(of_torch, "loader.workers")->reason, Not(HasSubstr("unidle")));
  EXPECT_NE(fix_of(of_torch, "cache.features"), nullptr);
}

TEST(CpuRestricted, AProgramThatNarrowedItself) {
  Signals signals = computing(4, 4);
  EXPECT_TRUE(silent("cpu-restricted", signals));
  signals = computing(4, 1);
  signals.cpus_at_start = 4;
  const Finding finding = fired("cpu-restricted", signals);
  EXPECT_THAT(finding.evidence,
              Contains(HasSubstr("an affinity mask keeps the run to 1 of 4 CPUs: the launch command")));
  EXPECT_EQ(finding.fixes.front().to, std::nullopt) << "the mask is the cause";
  EXPECT_EQ(finding.fixes.back().to, 1);
  signals.cpus_used = 0.5;
  EXPECT_TRUE(silent("cpu-restricted", signals)) << "it does not use what it has";
  signals.host_cpus_used = 4;
  signals.run_delay = 0.5;
  EXPECT_FALSE(silent("cpu-restricted", signals)) << "others take the rest";
  signals.run_delay = 0;
  EXPECT_TRUE(silent("cpu-restricted", signals)) << "its threads do not want it";
}

TEST(CpuRestricted, AMaskThatLeavesOneThread) {
  Signals signals = computing(1, 1);  // torch counts the CPUs of the mask
  EXPECT_TRUE(silent("cpu-restricted", signals)) << "the job has one CPU";
  signals.cpus_at_start = 2;
  const Finding finding = fired("cpu-restricted", signals);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("keeps the run to 1 of 2 CPUs")));
  EXPECT_EQ(fix_of(finding, "cpu.threads")->to, std::nullopt) << "more threads would not help";
  signals.ranks.resize(2);  // each rank has its own CPU
  EXPECT_TRUE(silent("cpu-restricted", signals));
}

TEST(CpuRestricted, AVariableThatLeavesOneThread) {
  Signals signals = computing(1, 4);
  signals.cpus_used = 1;
  EXPECT_TRUE(silent("cpu-restricted", signals)) << "nobody asked for one";
  signals.settings["cpu.threads"].environment = {{"OMP_NUM_THREADS", "4"}, {"MKL_NUM_THREADS", "1"}};
  const Finding finding = fired("cpu-restricted", signals);
  EXPECT_THAT(finding.evidence, Contains("the variable MKL_NUM_THREADS is 1"));
  EXPECT_EQ(fix_of(finding, "cpu.threads")->to, 4);
  set_effective(signals, "cpu.threads", "2");
  signals.cpus_used = 2;
  signals.settings["cpu.threads"].environment = {{"OMP_NUM_THREADS", "2"}};
  EXPECT_TRUE(silent("cpu-restricted", signals)) << "four CPUs may be two cores";
  set_effective(signals, "cpu.threads", "1");
  signals.settings["cpu.threads"].environment = {{"OMP_NUM_THREADS", "1"}};
  signals.cpus_used = 3.9;
  EXPECT_TRUE(silent("cpu-restricted", signals)) << "the workers use the others";
}

TEST(CpuRestricted, WorkersThatShareOneCpu) {
  Signals signals = waiting_cpu(0.6);
  set_effective(signals, "loader.workers", "4");
  signals.loader.emplace();
  signals.loader->workers = 4;
  signals.loader_busy = 0.25;
  signals.cpus_online = signals.cpus_allowed = 4;
  signals.cpus_used = 1.2;
  EXPECT_TRUE(silent("cpu-restricted", signals));
  signals.cpus_of_workers = 1;
  const Finding finding = fired("cpu-restricted", signals);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("workers may use 1 of the job's 4 CPUs")));
  EXPECT_EQ(fix_of(finding, "loader.workers")->to, 1);
}

}  // namespace
}  // namespace unidle::diagnose::testing
