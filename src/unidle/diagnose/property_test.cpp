// Properties that hold for every run, checked on many.
#include <gtest/gtest.h>

#include <random>

#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

double share_of(const Diagnosis& diagnosis, std::string_view id) {
  for (const Finding& finding : diagnosis.findings) {
    if (finding.id == id) {
      return finding.share.value_or(0);
    }
  }
  return 0;
}

/// Raises `cause` from 0 to 1; the finding's share must never fall, and must be there at the end.
void expect_monotone(std::string_view id, const std::function<Signals(double)>& cause) {
  double last = 0;
  for (int i = 0; i <= 100; ++i) {
    const double share = share_of(diagnose(cause(i / 101.0)), id);
    EXPECT_GE(share, last - 1e-12) << id << " at " << i << " %";
    last = std::max(last, share);
  }
  EXPECT_GT(last, 0) << id;
}

TEST(Property, MoreOfACauseNeverLowersItsShare) {
  expect_monotone("loader-no-workers", waiting_cpu);
  expect_monotone("loader-too-few-workers", [](double x) {
    Signals signals = healthy_cpu();
    set_input(signals, x);
    signals.loader_busy = 1;
    signals.cpus_used = 2;
    return signals;
  });
  expect_monotone("recomputed-features", [](double x) {
    Signals signals = waiting_cpu(0.8);
    set_effective(signals, "cache.features", "false");
    signals.epochs = 1 + 20 * x;
    return signals;
  });
  expect_monotone("sync-each-step", [](double x) {
    Signals signals = healthy_cpu();
    signals.step = StepShares{.compute = 1 - x, .sync = x};
    signals.syncs_per_step = 1;
    return signals;
  });
  expect_monotone("precision-fp32", [](double x) {
    Signals signals = healthy_gpu();
    set_effective(signals, "precision.amp", "off");
    signals.device_busy = x;
    return signals;
  });
  expect_monotone("loader-respawn", [](double x) {
    Signals signals = healthy_cpu();
    set_input(signals, x);
    signals.loader = LoaderFacts{};
    signals.loader->workers = 2;
    signals.loader->starts = 50;
    signals.loader->start_wait_s = 90 * x;
    return signals;
  });
  expect_monotone("loader-per-row", [](double x) {
    Signals signals = waiting_cpu(x);
    signals.loader = LoaderFacts{};
    signals.loader->workers = 0;
    signals.loader->in_memory = signals.loader->map_style = true;
    signals.sample_s = 5e-6;
    return signals;
  });
  expect_monotone("storage-bound", [](double x) {
    Signals signals = healthy_gpu();
    set_input(signals, 0.6);
    signals.cpus_used = 1;
    signals.disk_wait = 2;
    signals.samples = SampleFacts{};
    signals.samples->count = 1000;
    signals.samples->total_s = 100;
    signals.samples->cpu_s = 100 * (1 - x);
    signals.samples->wait_s = 100 * x;
    return signals;
  });
  expect_monotone("padding-waste", [](double x) {
    Signals signals = healthy_gpu();
    signals.padding = PaddingFacts{1 - x, 1, {}, false, ""};
    return signals;
  });
  expect_monotone("memory-not-pinned", [](double x) {
    Signals signals = healthy_gpu();
    signals.step = StepShares{.transfer = x, .compute = 1 - x};
    signals.transfer = TransferFacts{};
    signals.transfer->pageable_bytes = 1e9;
    return signals;
  });
  expect_monotone("logging-dominates", [](double x) {
    Signals signals = healthy_cpu();
    signals.logging = LoggingFacts{100, 100 * x, ""};
    return signals;
  });
  expect_monotone("optimizer-not-fused", [](double x) {
    Signals signals = healthy_cpu();
    signals.step = StepShares{.compute = 1 - x, .optimizer = x};
    signals.optimizer = OptimizerFacts{"AdamW", false, false, 100};
    return signals;
  });
  expect_monotone("throttled", [](double x) {
    Signals signals = healthy_gpu();
    signals.gpu.throttled = 1;
    signals.gpu.clock_max_mhz = 2000;
    signals.gpu.clock_mhz = 2000 * (1 - x);
    return signals;
  });
  expect_monotone("straggler-rank", [](double x) {
    Signals signals = healthy_gpu();
    signals.ranks = {{0, 10, 8 * x}, {1, 10, 8 * x}, {2, 10, 0}};
    return signals;
  });
  expect_monotone("empty-cache-each-step", [](double x) {
    Signals signals = healthy_gpu();
    signals.syncs = {{"gc", "a.py:1", 1000, 1000, 100 * x}};
    return signals;
  });
  const auto phase = [](double PhaseTimes::*part) {
    return [part](double x) {
      Signals signals = healthy_cpu();
      signals.time = {};
      signals.time.train = 100 * (1 - x);
      signals.time.*part = 100 * x;
      return signals;
    };
  };
  expect_monotone("validation-dominates", phase(&PhaseTimes::validate));
  expect_monotone("checkpoint-dominates", phase(&PhaseTimes::checkpoint));
  expect_monotone("startup-dominates", phase(&PhaseTimes::startup));
}

/// Facts of a healthy run that only some programs report, with the same noise.
void add_quiet_facts(Signals& signals, std::uniform_real_distribution<double>& noise, std::mt19937& random) {
  const auto some = [&](double usual) { return usual * noise(random); };
  signals.loader = LoaderFacts{};
  signals.loader->workers = 2;
  signals.loader->map_style = true;
  signals.loader->in_memory = random() % 2 == 0;
  signals.loader->starts = 4;
  signals.loader->start_wait_s = some(1);
  signals.samples = SampleFacts{.count = 30000,
                                .total_s = some(60),
                                .p50_s = some(1.5e-3),
                                .p99_s = some(4e-3),
                                .max_s = 0.1,
                                .collate_s = some(2),
                                .cpu_s = some(25),
                                .wait_s = some(35),
                                .run_delay_s = some(1)};
  signals.input_bursts = std::min(1.0, some(0.6));
  signals.late_input_s = some(1);
  signals.disk_wait = some(0.3);
  signals.read_bytes_per_s = some(2e6);
  signals.threads = some(12);
  signals.processes = 3;
  signals.cpus_online = 4;
  signals.host_memory_used = some(0.3);
  signals.padding = PaddingFacts{90, some(100) > 95 ? 110.0 : 100.0, some(100), true, ""};
  signals.logging = LoggingFacts{500, some(1), ""};
  signals.syncs = {{"item", "a.py:1", 20, 20, some(0.1)}, {"gc", "a.py:2", 5, 5, some(0.1)}};
  signals.transfer = TransferFacts{1e9, some(1e7), 10, 1000, ""};
  signals.optimizer = OptimizerFacts{"AdamW", true, std::nullopt, 100};
  signals.compile = CompileFacts{true, 2, some(2), ""};
  signals.parallel = "ddp";
  signals.ranks = {{0, some(1) > 1 ? 90.0 : 91.0, some(5)}, {1, 90, some(5)}};
  signals.gpu.throttled = some(0.5);
  signals.gpu.throttled_by_power_only = true;
  signals.gpu.shared = 0;
  signals.gpu.link_width = signals.gpu.link_width_max = 16;
  signals.gpu.alloc_retries = signals.gpu.ooms = 0;
}

TEST(Property, NoiseOnAHealthyRunRaisesNoWarning) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> noise(0.6, 1.6);
  for (int round = 0; round < 500; ++round) {
    Signals signals = round % 2 == 0 ? healthy_cpu() : healthy_gpu();
    StepShares& step = *signals.step;
    step.input *= noise(random);
    step.optimizer *= noise(random);
    step.other *= noise(random);
    step.compute = 1 - step.input - step.optimizer - step.other;
    signals.time.startup *= noise(random);
    signals.time.validate *= noise(random);
    signals.time.checkpoint *= noise(random);
    signals.wall_s = signals.time.startup + signals.time.train + signals.time.validate + signals.time.checkpoint +
                     signals.time.other;
    *signals.sample_s *= noise(random);
    *signals.loader_busy *= noise(random);
    *signals.cpus_used = std::min(4.0, *signals.cpus_used * noise(random));
    *signals.step_s *= noise(random);
    add_quiet_facts(signals, noise, random);
    const Diagnosis diagnosis = diagnose(signals);
    EXPECT_EQ(diagnosis.verdict, Verdict::kHealthy);
    for (const Finding& finding : diagnosis.findings) {
      EXPECT_EQ(finding.severity, Severity::kInfo) << finding.id;
    }
  }
}

TEST(Property, MissingAnySignalNeverAddsAFinding) {
  // Each removes one signal from a run with several faults; remaining findings must come from the remaining signals.
  const std::vector<std::function<void(Signals&)>> losses = {
      [](Signals& s) { s.step.reset(); },           [](Signals& s) { s.steps.reset(); },
      [](Signals& s) { s.step_s.reset(); },         [](Signals& s) { s.sample_s.reset(); },
      [](Signals& s) { s.epochs.reset(); },         [](Signals& s) { s.cpus_allowed.reset(); },
      [](Signals& s) { s.cpus_used.reset(); },      [](Signals& s) { s.cpu_bf16.reset(); },
      [](Signals& s) { s.validations.reset(); },    [](Signals& s) { s.settings.clear(); },
      [](Signals& s) { s.gpus.reset(); },           [](Signals& s) { s.wall_s = 0; },
      [](Signals& s) { s.device_busy.reset(); },    [](Signals& s) { s.checkpoints.reset(); },
      [](Signals& s) { s.device_kind = "unknown"; }};
  Signals faulty = waiting_cpu(0.5);
  faulty.cpu_bf16 = true;
  set_effective(faulty, "cache.features", "false");
  set_effective(faulty, "layout.channels_last", "false");
  const Diagnosis whole = diagnose(faulty);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    Signals less = faulty;
    losses[i](less);
    const Diagnosis diagnosis = diagnose(less);
    for (const Finding& finding : diagnosis.findings) {
      const bool known = std::any_of(whole.findings.begin(), whole.findings.end(),
                                     [&](const Finding& one) { return one.id == finding.id; });
      EXPECT_TRUE(known) << finding.id << " appeared when loss " << i << " took a signal away";
    }
  }
}

TEST(Property, BoundsAreNeverBelowOneAndSharesWithinTheWall) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> any(0, 1);
  for (int round = 0; round < 2000; ++round) {
    Signals signals = any(random) < 0.5 ? healthy_gpu() : healthy_cpu();
    set_input(signals, any(random));
    set_effective(signals, "loader.workers", any(random) < 0.5 ? "0" : "2");
    signals.cpus_allowed = 0.5 + 8 * any(random);
    signals.cpus_used = *signals.cpus_allowed * any(random);
    signals.loader_busy = any(random);
    signals.cpu_bf16 = true;
    signals.syncs_per_step = 1;
    signals.device_busy = any(random);
    signals.gpu_memory_used = any(random);
    for (const Finding& finding : diagnose(signals).findings) {
      EXPECT_GE(finding.share.value_or(0), 0) << finding.id;
      EXPECT_LE(finding.share.value_or(0), 1) << finding.id;
      EXPECT_GE(finding.speedup_bound.value_or(1), 1 - 1e-9) << finding.id;
    }
  }
}

TEST(Property, TheOrderInWhichSettingsCameIsIrrelevant) {
  Signals forward = waiting_cpu(0.6);
  forward.settings["a.knob"] = {"1", "c.yaml:1", "2"};
  forward.settings["z.knob"] = {"3", "c.yaml:2", "4"};
  Signals backward = forward;
  backward.settings.clear();
  for (auto at = forward.settings.rbegin(); at != forward.settings.rend(); ++at) {
    backward.settings.insert(*at);
  }
  EXPECT_EQ(to_json(diagnose(forward)).dump(), to_json(diagnose(backward)).dump());
}

}  // namespace
}  // namespace unidle::diagnose::testing
