// On a GPU, host time is lost only while the device idles: checks every rule that counts host time on devices that
// idle, idle a little, and are full.
#include <gmock/gmock.h>

#include <set>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

constexpr double kTrain = 0.98;
constexpr double kHost = 0.9;  // share of each step spent on the case's cause

/// A GPU whose host has plenty of CPUs, training nearly all of the time.
Signals busy_gpu(double busy) {
  Signals signals = healthy_gpu();
  signals.wall_s = 100;
  signals.time = {.startup = 1, .train = 98, .validate = 0, .checkpoint = 0, .other = 1};
  signals.step = StepShares{.compute = 1};
  signals.step_s = 0.98;
  signals.steps = 100;
  signals.device_busy = busy;
  return signals;
}

LoaderFacts& loader_of(Signals& signals) { return signals.loader ? *signals.loader : signals.loader.emplace(); }

void wait_for_input(Signals& signals) { signals.step = StepShares{.input = kHost, .compute = 1 - kHost}; }

void copy(Signals& signals, double pinned) {
  signals.step = StepShares{.transfer = kHost, .compute = 1 - kHost};
  signals.transfer = TransferFacts{.pinned_bytes = pinned * 1e9,
                                   .pageable_bytes = (1 - pinned) * 1e9,
                                   .blocking = 100,
                                   .nonblocking = 0,
                                   .where = ""};
}

void wait_for_device(Signals& signals, const char* call) {
  signals.step = StepShares{.compute = 1 - kHost, .sync = kHost};
  signals.syncs_per_step = 1;
  signals.syncs = {{SyncCall{call, "train.py:7", 100, 100, 98 * kHost}}};
}

void slow_samples(Signals& signals, double each_s) {
  wait_for_input(signals);
  signals.sample_s = each_s;
  signals.samples.emplace();
  signals.samples->count = 3200;
  signals.samples->total_s = 3200 * each_s;
  signals.samples->run_delay_s = 0;
}

struct Bound {
  const char* id;
  void (*make)(Signals&);
};

const Bound kCases[] = {
    {"loader-no-workers",
     [](Signals& s) {
       wait_for_input(s);
       set_effective(s, "loader.workers", "0");
     }},
    {"loader-too-few-workers",
     [](Signals& s) {
       wait_for_input(s);
       s.loader_busy = 0.98;
       s.cpus_used = 2;
     }},
    {"loader-oversubscribed",
     [](Signals& s) {
       wait_for_input(s);
       set_effective(s, "loader.workers", "16");
       s.loader_busy = 1;
       s.cpus_used = 4;
     }},
    {"loader-respawn",
     [](Signals& s) {
       wait_for_input(s);
       loader_of(s).starts = 20;
       loader_of(s).start_wait_s = 90;
       loader_of(s).persistent_workers = false;
     }},
    {"loader-shallow-prefetch",
     [](Signals& s) {
       wait_for_input(s);
       s.loader_busy = 0.3;
       s.input_bursts = 0.95;
     }},
    {"loader-per-row",
     [](Signals& s) {
       wait_for_input(s);
       loader_of(s).in_memory = loader_of(s).map_style = true;
       s.sample_s = 1e-5;
     }},
    {"dataset-slow-sample", [](Signals& s) { slow_samples(s, 0.2); }},
    {"dataset-heavy-tail",
     [](Signals& s) {
       slow_samples(s, 0.1);
       s.samples->p50_s = 1e-3;
       s.samples->p99_s = 1;
     }},
    {"storage-bound",
     [](Signals& s) {
       slow_samples(s, 0.1);
       s.samples->cpu_s = 1;
       s.samples->wait_s = 99;
       s.cpus_used = 1;
       s.disk_wait = 2;
     }},
    {"recomputed-features",
     [](Signals& s) {
       slow_samples(s, 0.1);
       s.epochs = 10;
     }},
    {"cpu-restricted",
     [](Signals& s) {
       wait_for_input(s);
       set_effective(s, "loader.workers", "32");
       s.cpus_online = 64;
       s.loader_busy = 1;
       s.cpus_used = 4;
     }},
    {"memory-not-pinned", [](Signals& s) { copy(s, 0); }},
    {"transfer-blocking", [](Signals& s) { copy(s, 1); }},
    {"dataset-fits-device",
     [](Signals& s) {
       copy(s, 1);
       loader_of(s).in_memory_bytes = 1'000'000;
       s.gpu.memory_bytes = 80'000'000'000;
       s.gpu_memory_used = 0.1;
     }},
    {"link-degraded",
     [](Signals& s) {
       copy(s, 1);
       s.gpu.link_width = 1;
       s.gpu.link_width_max = 16;
     }},
    {"sync-each-step", [](Signals& s) { wait_for_device(s, "item"); }},
    {"synchronize-each-step", [](Signals& s) { wait_for_device(s, "synchronize"); }},
    {"empty-cache-each-step", [](Signals& s) { wait_for_device(s, "empty_cache"); }},
    {"logging-dominates", [](Signals& s) { s.logging = LoggingFacts{100, 90, "train.py:3"}; }},
    {"optimizer-not-fused",
     [](Signals& s) {
       s.step = StepShares{.compute = 1 - kHost, .optimizer = kHost};
       s.optimizer = OptimizerFacts{.name = "AdamW", .fused = false, .foreach = false, .tensors = 300};
     }},
    {"launch-bound", [](Signals&) {}},
    {"compile-off", [](Signals& s) { set_effective(s, "compile.mode", "off"); }},
    {"recompiles",
     [](Signals& s) { s.compile = CompileFacts{.compiled = true, .recompilations = 5, .seconds = 90, .reason = ""}; }},
};

TEST(BoundedByIdle, EveryRuleSaysWhatItCounts) {
  std::set<std::string> cases;
  for (const Bound& one : kCases) {
    EXPECT_TRUE(cases.insert(one.id).second) << one.id;
  }
  for (const Rule* rule : all_rules()) {
    EXPECT_NE(rule->counts, Counts::kUnset) << rule->id << ": does it count what the host spends?";
    EXPECT_TRUE(!cases.contains(rule->id) || rule->counts == Counts::kHostTime) << rule->id;
  }
}

class BoundedByIdle : public ::testing::TestWithParam<Bound> {};

TEST_P(BoundedByIdle, AHostCostsNoMoreThanTheDeviceIdles) {
  for (const double busy : {0.1, 0.5, 0.75}) {
    Signals signals = busy_gpu(busy);
    GetParam().make(signals);
    const double idle = (1 - busy) * kTrain;
    const Finding finding = fired(GetParam().id, signals);
    const double outside = 0.02;  // of calls that may lie before or after the training
    ASSERT_TRUE(finding.share) << busy;
    EXPECT_LE(*finding.share, idle + outside) << busy;
    EXPECT_LE(*finding.speedup_bound, amdahl(idle + outside)) << busy;
    EXPECT_GT(*finding.share, 0.05) << busy;
  }
}

TEST_P(BoundedByIdle, OnAFullDeviceItIsNoFault) {
  Signals signals = busy_gpu(0.97);
  GetParam().make(signals);
  const Diagnosis diagnosis = diagnose(signals);
  EXPECT_EQ(diagnosis.verdict, Verdict::kHealthy);
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_EQ(finding.severity, Severity::kInfo) << finding.id;
    EXPECT_LE(finding.share.value_or(0), 0.03) << finding.id;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, BoundedByIdle, ::testing::ValuesIn(kCases), [](const auto& one) {
  std::string name = one.param.id;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace unidle::diagnose::testing
