// The table of accepted keys.
#include <algorithm>
#include <cstddef>

#include "unidle/train/config.h"

namespace unidle::train {

namespace {

constexpr double kNone = std::numeric_limits<double>::lowest();
using enum SettingType;

}  // namespace

const std::vector<Setting>& all_settings() {
  static const std::vector<Setting> kSettings = {
      {"workload", kText, "", kNone, {}, "Which workload to train; required."},
      {"seed", kInt, "1", 0, {}, "Seed of weights, order and crops."},
      {"device",
       kChoice,
       "auto",
       kNone,
       {"auto", "cpu", "cuda"},
       "Where to train; auto takes a GPU when there is one."},
      {"data.folder", kText, "", kNone, {}, "Where the data lies; by default data/WORKLOAD in unidle's home folder."},
      {"data.crops_per_decode", kInt, "1", 1, {}, "Samples cut from a picture each time it is decoded."},
      {"input.size", kInt, "128", 4, {}, "Side of the high-resolution patch, in pixels; a multiple of 4."},
      {"model.width", kInt, "32", 8, {}, "Channels of the model; even."},
      {"model.depth", kInt, "4", 1, {}, "Blocks of the model."},
      {"loader.workers", kInt, "0", 0, {}, "Threads that make samples; 0: the training thread makes them."},
      {"loader.prefetch_factor", kInt, "2", 1, {}, "Batches made ahead per worker."},
      {"loader.pin_memory", kBool, "false", kNone, {}, "Page-locked batches, for copies to a GPU."},
      {"loader.persistent_workers", kBool, "true", kNone, {}, "Workers live as long as the run; threads always do."},
      {"transfer.non_blocking", kBool, "false", kNone, {}, "Copies to a GPU do not hold up the host."},
      {"batch.size", kInt, "4", 1, {}, "Samples in a micro-batch."},
      {"batch.accumulation", kInt, "1", 1, {}, "Micro-batches per optimiser step."},
      {"precision.amp", kChoice, "off", kNone, {"off", "fp16", "bf16"}, "Mixed precision of forward and backward."},
      {"precision.tf32", kBool, "false", kNone, {}, "TF32 for fp32 matrix products and convolutions on a GPU."},
      {"compile.mode",
       kChoice,
       "off",
       kNone,
       {"off", "default", "reduce-overhead", "max-autotune", "graph"},
       "How the step is compiled. This engine runs it as it is: all but off are read back as off."},
      {"layout.channels_last", kBool, "false", kNone, {}, "Channels innermost in memory (NHWC)."},
      {"cudnn.benchmark", kBool, "false", kNone, {}, "cuDNN measures its algorithms and keeps the fastest."},
      {"optimizer.lr", kReal, "0.0002", 0, {}, "Learning rate of AdamW."},
      {"optimizer.weight_decay", kReal, "0.01", 0, {}, "Decoupled weight decay of AdamW."},
      {"optimizer.fused", kBool, "false", kNone, {}, "One fused update for all parameters, not one by one."},
      {"optimizer.zero_to_none",
       kBool,
       "true",
       kNone,
       {},
       "Gradients are dropped after a step, not filled with zeros."},
      {"optimizer.warmup_steps", kInt, "0", 0, {}, "Steps over which the learning rate rises to its value."},
      {"grad.clip_norm", kReal, "0", 0, {}, "Largest norm of all gradients together; 0: no clipping."},
      {"grad.checkpointing", kBool, "false", kNone, {}, "Recompute blocks in the backward pass to save memory."},
      {"metrics.interval", kInt, "1", 1, {}, "Steps between two readings of the loss by the host."},
      {"cache.features", kChoice, "off", kNone, {"off", "memory"}, "memory: what was decoded once is kept."},
      {"cache.memory_mib", kInt, "1024", 1, {}, "Budget of that cache, in MiB."},
      {"cpu.threads", kInt, "0", 0, {}, "Threads that compute; 0: as many as this process may use."},
      {"train.samples", kInt, "1024", 1, {}, "Length of the run, in samples; whole steps."},
      {"train.warmup_samples", kInt, "32", 0, {}, "Samples at the start that the rate leaves out."},
      {"validation.interval", kInt, "1", 0, {}, "Epochs between two validations; 0: only at the end."},
      {"checkpoint.interval", kInt, "0", 0, {}, "Samples between two checkpoints; 0: none."},
      {"checkpoint.folder",
       kText,
       "",
       kNone,
       {},
       "Where checkpoints go; by default checkpoints/WORKLOAD in the home folder."},
      {"loss.perceptual_weight", kReal, "0", 0, {}, "Weight of the distance of deep features in the loss."},
      {"loss.perceptual_features", kText, "", kNone, {}, "TorchScript file that makes those features of a picture."},
  };
  return kSettings;
}

const Setting* find_setting(std::string_view name) {
  for (const Setting& setting : all_settings()) {
    if (setting.name == name) {
      return &setting;
    }
  }
  return nullptr;
}

namespace {

/// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

std::string_view closest_setting(std::string_view name) {
  std::string_view best;
  std::size_t best_cost = std::string_view::npos;
  const auto offer = [&](std::string_view candidate, std::size_t cost) {
    if (cost < best_cost) {
      best_cost = cost;
      best = candidate;
    }
  };
  for (const Setting& setting : all_settings()) {
    if (const std::size_t distance = edit_distance(name, setting.name); 2 * distance <= name.size()) {
      offer(setting.name, 2 * distance);
    }
    // A key in the wrong section is as common as a misspelt one: the last part counts too, a little less.
    const std::string_view asked = last_part(name);
    const std::string_view known = last_part(setting.name);
    if (const std::size_t distance = edit_distance(asked, known);
        2 * distance <= std::max(asked.size(), known.size())) {
      offer(setting.name, 2 * distance + 3);
    }
  }
  return best;
}

}  // namespace unidle::train
