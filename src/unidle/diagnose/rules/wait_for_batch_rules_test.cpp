// Rules that tell making samples from the rest of the wait for a batch: iterators, samplers, collate functions.
#include <gmock/gmock.h>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// Rows in memory that take so much of the wait for a batch, which is 0.6 of each step of 90 ms.
Signals rows_in_wait(double part) {
  Signals signals = waiting_cpu(0.6);
  signals.sample_s = 5e-6;
  LoaderFacts& loader = signals.loader.emplace();
  loader.workers = 0;
  loader.in_memory = loader.map_style = true;
  loader.where = "train.py:20";
  loader.dataset_where = "train.py:9";
  SampleFacts& samples = signals.samples.emplace();
  samples.count = 32'000;
  samples.p50_s = 5e-6;
  samples.total_s = part * 54e-3 * 1000;
  return signals;
}

Signals iterators_in_each_step() {
  Signals signals = rows_in_wait(0.04);
  signals.loader->iterators = signals.loader->batches = 1000;
  signals.loader->in_epoch = 400'000;
  signals.loader->iterated_where = "train.py:29";
  return signals;
}

TEST(LoaderPerRow, CountsWithoutWorkersOnlyTheWaitInWhichRowsAreMade) {
  EXPECT_NEAR(*fired("loader-per-row", rows_in_wait(1)).share, 0.54, 1e-9);
  EXPECT_NEAR(*fired("loader-per-row", rows_in_wait(0.5)).share, 0.27, 1e-9);
  EXPECT_TRUE(silent("loader-per-row", rows_in_wait(0.04)));
  const double whole = *fired("loader-per-row", rows_in_wait(1)).speedup_bound;
  EXPECT_LT(*fired("loader-per-row", rows_in_wait(0.5)).speedup_bound, whole) << "the rest stays, with workers as well";
}

/// The same with costly samples.
Signals samples_in_wait(double part) {
  Signals signals = rows_in_wait(part);
  signals.cpus_allowed = 1;
  signals.sample_s = 2e-3;
  signals.epochs = 10;
  set_effective(signals, "cache.features", "off");
  return signals;
}

TEST(SampleRules, CountWithoutWorkersOnlyTheWaitInWhichSamplesAreMade) {
  for (const char* id : {"dataset-slow-sample", "recomputed-features"}) {
    const double whole = *fired(id, samples_in_wait(1)).share;
    EXPECT_NEAR(*fired(id, samples_in_wait(0.5)).share, whole / 2, 1e-9) << id;
    EXPECT_TRUE(silent(id, samples_in_wait(0.1))) << id;
  }
}

TEST(SampleRules, ATailAndADiskAreNoCauseOfAWaitForTheSampler) {
  const auto tail = [](double part) {
    Signals signals = samples_in_wait(part);
    signals.cpus_allowed = 4;
    signals.samples->p99_s = 2e-3;
    return signals;
  };
  fired("dataset-heavy-tail", tail(1));
  EXPECT_TRUE(silent("dataset-heavy-tail", tail(0.1)));
  const auto disk = [](double part) {
    Signals signals = samples_in_wait(part);
    signals.cpus_allowed = 4;
    signals.samples->cpu_s = 0.1 * signals.samples->total_s;
    signals.samples->wait_s = 0.9 * signals.samples->total_s;
    signals.read_bytes_per_s = 1e8;
    return signals;
  };
  fired("storage-bound", disk(1));
  EXPECT_TRUE(silent("storage-bound", disk(0.1)));
}

TEST(LoaderNoWorkers, WorkersDoNotHideWhatIsNoWorkOnSamples) {
  const double all = *fired("loader-no-workers", rows_in_wait(1)).speedup_bound;
  const Finding few = fired("loader-no-workers", rows_in_wait(0.4));
  EXPECT_LT(*few.speedup_bound, 0.8 * all);
  EXPECT_THAT(few.evidence, Contains("making the samples of a batch takes 40 % of the wait for it"));
  const Finding none = fired("loader-no-workers", rows_in_wait(0.04));
  EXPECT_TRUE(none.fixes.front().in_code);
  EXPECT_THAT(none.fixes.front().reason, HasSubstr("in the sampler"));
  EXPECT_EQ(none.where, "train.py:20") << "not where samples are made";
}

TEST(IteratorEachStep, ProposesNoWorkers) {
  const Signals signals = iterators_in_each_step();
  const Finding finding = fired("iterator-each-step", signals);
  EXPECT_NEAR(*finding.share, 0.54 * 0.96, 1e-9);
  EXPECT_EQ(finding.where, "train.py:29");
  EXPECT_THAT(finding.evidence, Contains("1000 iterators of the loader were made for 1000 batches"));
  const Diagnosis diagnosis = diagnose::diagnose(signals);
  EXPECT_EQ(diagnosis.findings.front().id, "iterator-each-step");
  EXPECT_THAT(answer(diagnosis), AllOf(HasSubstr("batches = iter(loader)"), HasSubstr("; see train.py:29")));
  for (const Finding& each : diagnosis.findings) {
    EXPECT_EQ(fix_of(each, "loader.workers"), nullptr) << each.id;
  }
}

TEST(IteratorEachStep, CostlySamplesNeedOneIteratorBeforeWorkers) {
  Signals signals = iterators_in_each_step();
  signals.samples->total_s = 0.9 * 54e-3 * 1000;
  EXPECT_TRUE(silent("iterator-each-step", signals));
  for (const char* id : {"loader-no-workers", "loader-per-row"}) {
    EXPECT_TRUE(fired(id, signals).fixes.front().in_code) << id;
  }
  EXPECT_THAT(fired("loader-no-workers", signals).fixes.front().reason, HasSubstr("make one iterator"));
}

TEST(IteratorEachStep, APassOfOneBatchIsNone) {
  Signals signals = iterators_in_each_step();
  signals.loader->in_epoch = 32;
  EXPECT_TRUE(silent("iterator-each-step", signals));
  signals.loader->in_epoch.reset();
  EXPECT_TRUE(silent("iterator-each-step", signals)) << "nobody knows how many";
}

TEST(IteratorEachStep, ExplainsWorkersThatAreStartedForEachBatch) {
  Signals signals = iterators_in_each_step();
  set_effective(signals, "loader.workers", "2");
  signals.loader->workers = 2;
  signals.loader->starts = 1000;
  signals.loader->start_wait_s = 0.4 * signals.wall_s;
  const Diagnosis diagnosis = diagnose::diagnose(signals);
  EXPECT_EQ(diagnosis.findings.front().id, "iterator-each-step");
  EXPECT_NEAR(*diagnosis.findings.front().share, 0.54, 1e-9);
  EXPECT_THAT(diagnosis.folded, Contains("loader-respawn"));
}

TEST(SlowSampler, CountsItsPartOfTheWholeWait) {
  Signals signals = rows_in_wait(0.04);
  EXPECT_EQ(missing("slow-sampler", signals), "what runs while training waits for a batch (stack samples)");
  signals.hot = {{"train", "input", "train.py:9", "__getitem__", 4, 100}};
  EXPECT_TRUE(silent("slow-sampler", signals));
  signals.hot.push_back({"train", "indices", "train.py:17", "Classes.__iter__", 60, 100});
  signals.hot.push_back({"train", "indices", "train.py:16", "Classes.__iter__", 20, 100});
  const Finding finding = fired("slow-sampler", signals);
  EXPECT_NEAR(*finding.share, 0.54 * 0.8, 1e-9);
  EXPECT_EQ(finding.where, "train.py:17");
  EXPECT_THAT(finding.evidence,
              Contains("80 % of the wait for a batch is in the sampler, Classes.__iter__ (train.py:17), by 100 stack "
                       "samples"));
  for (HotLine& line : signals.hot) {
    line.hits = (line.hits + 9) / 10;
    line.total /= 10;
  }
  EXPECT_TRUE(silent("slow-sampler", signals)) << "too few looks";
}

TEST(LoaderNoWorkers, LeadsToACollateFunctionThatTakesMostOfABatch) {
  Signals signals = rows_in_wait(0.1);
  signals.samples->collate_s = 9 * signals.samples->total_s;
  signals.loader->collate = "targets";
  signals.loader->collate_where = "train.py:12";
  const Finding finding = fired("loader-no-workers", signals);
  EXPECT_TRUE(fix_of(finding, "loader.workers")->to) << "workers remain the first fix";
  ASSERT_EQ(finding.fixes.size(), 2U);
  EXPECT_THAT(finding.fixes.back().reason,
              AllOf(HasSubstr("or make the collate function cheaper"), HasSubstr(", train.py:12;"), HasSubstr("1.9x")));
  EXPECT_THAT(answer(diagnose::diagnose(signals)), HasSubstr("for batches that targets (train.py:12) puts together"));
  signals.samples->collate_s = 0;
  signals.samples->total_s *= 10;
  EXPECT_THAT(answer(diagnose::diagnose(signals)), Not(HasSubstr("puts together")));
}

}  // namespace
}  // namespace unidle::diagnose::testing
