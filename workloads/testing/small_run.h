// Short training runs for tests of workloads.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "unidle/train/device.h"
#include "unidle/train/trainer.h"
#include "workloads/registry.h"

namespace unidle::workloads {

/// Trains on a CPU with one thread; `settings` override the defaults.
inline train::Summary train_small(const std::string& workload, std::vector<std::string> settings,
                                  std::optional<std::filesystem::path> resume = std::nullopt) {
  settings.insert(settings.begin(), {"cpu.threads=1", "device=cpu", "train.warmup_samples=0"});
  const train::Config config = train::Config::from_text("workload: " + workload + "\n", workload + ".yaml", settings);
  train::configure_torch(config);
  const auto opened = find_workload(config).open(config, at::kCPU);
  train::Events events;
  train::TrainOptions options;
  options.resume = std::move(resume);
  train::Trainer trainer(*opened, config, at::kCPU, events, options);
  return trainer.run();
}

/// Checks that a run interrupted at half of `samples` and resumed ends bit for bit like an uninterrupted one.
inline void expect_resumes_exactly(const std::string& workload, std::vector<std::string> settings, std::int64_t samples,
                                   const std::filesystem::path& folder) {
  const auto with = [&](std::vector<std::string> more, std::optional<std::filesystem::path> resume = std::nullopt) {
    more.insert(more.begin(), settings.begin(), settings.end());
    more.push_back("checkpoint.folder=" + folder.string());
    return train_small(workload, more, std::move(resume));
  };
  const train::Summary whole = with({"train.samples=" + std::to_string(samples)});
  with({"train.samples=" + std::to_string(samples / 2), "checkpoint.interval=" + std::to_string(samples)});
  const train::Summary resumed = with({"train.samples=" + std::to_string(samples)}, folder);
  EXPECT_EQ(resumed.samples, samples / 2);
  EXPECT_EQ(resumed.loss_last, whole.loss_last);
  EXPECT_EQ(resumed.metric, whole.metric);
}

}  // namespace unidle::workloads
