// The table of accepted keys.
#include <algorithm>
#include <cstddef>

#include "unidle/base/error.h"
#include "unidle/base/nearest.h"
#include "unidle/train/config.h"
#include "unidle/traits/workload.h"

namespace unidle::train {

namespace {

constexpr double kNone = std::numeric_limits<double>::lowest();
using enum SettingType;

constexpr double kInt32 = std::numeric_limits<int>::max();  // for values stored in an int
// No network is this wide, and products of larger numbers overflow.
constexpr double kWidest = 1 << 16;
constexpr double kDeepest = 1 << 12;
constexpr double kMostThreads = 4096;  // limit of the loader, for threads and batches ahead per thread

std::vector<Setting>& known_settings() {
  static std::vector<Setting> settings = {
      {"workload", kText, "", kNone, {}, "Which workload to train; required."},
      {"seed", kInt, "1", 0, {}, "Seed of weights, order and crops."},
      {"device",
       kChoice,
       "auto",
       kNone,
       {"auto", "cpu", "cuda"},
       "Where to train; auto takes a GPU when there is one."},
      {"data.folder", kText, "", kNone, {}, "Where the data lies; by default data/WORKLOAD in unidle's home folder."},
      {"data.on_device", kBool, "false", kNone, {}, "The whole data set in the device's memory, read once."},
      {"data.crops_per_decode", kInt, "1", 1, {}, "Samples cut from a picture each time it is decoded.", kInt32},
      {"data.group", kInt, "1", 1, {}, "Samples of similar length that stay together in batches."},
      {"prepare.source", kText, "", kNone, {}, "What --prepare starts from; by default data that a package carries."},
      {"prepare.samples",
       kInt,
       "0",
       0,
       {},
       "How much --prepare makes where it generates data; 0: the workload's own size."},
      {"prepare.parts", kInt, "2", 1, {}, "Files that --prepare writes a table in."},
      {"input.size", kInt, "128", 4, {}, "Size of a sample: pixels of a side, or days of a window.", kInt32},
      {"model.width", kInt, "32", 8, {}, "Channels of the model, or width of its layers; even.", kWidest},
      {"model.depth", kInt, "4", 1, {}, "Blocks or layers of the model.", kDeepest},
      {"loader.workers",
       kInt,
       "0",
       0,
       {},
       "Threads that make samples; 0: the training thread makes them.",
       kMostThreads},
      {"loader.prefetch_factor", kInt, "2", 1, {}, "Batches made ahead per worker.", kMostThreads},
      {"loader.pin_memory", kBool, "false", kNone, {}, "Page-locked batches, for copies to a GPU."},
      {"loader.persistent_workers", kBool, "true", kNone, {}, "Workers live as long as the run; threads always do."},
      {"transfer.non_blocking", kBool, "false", kNone, {}, "Copies to a GPU do not hold up the host."},
      {"batch.size", kInt, "4", 1, {}, "Samples in a micro-batch."},
      {"batch.accumulation", kInt, "1", 1, {}, "Micro-batches per optimiser step."},
      {"precision.amp",
       kChoice,
       "off",
       kNone,
       {"off", "auto", "fp16", "bf16", "true"},
       "Mixed precision of forward and backward. auto: bf16 on a GPU that has units for it. true names no precision: "
       "it "
       "stays off."},
      {"precision.tf32", kBool, "false", kNone, {}, "TF32 for fp32 matrix products and convolutions on a GPU."},
      {"compile.mode",
       kChoice,
       "off",
       kNone,
       {"off", "auto", "default", "reduce-overhead", "max-autotune", "graph", "fused"},
       "graph: on a GPU the whole step is one captured graph; auto: the same, and nothing on a CPU. fused: loss and "
       "gradients are compiled by torch's inductor, and captured too. This engine has no other: all else is read back "
       "as "
       "off."},
      {"layout.channels_last", kBool, "false", kNone, {}, "Channels innermost in memory (NHWC)."},
      {"cudnn.benchmark", kBool, "false", kNone, {}, "cuDNN measures its algorithms and keeps the fastest."},
      {"optimizer.name", kChoice, "adamw", kNone, {"adamw", "sgd"}, "The update rule."},
      {"optimizer.lr", kReal, "0.0002", 0, {}, "Learning rate; the highest one of a schedule."},
      {"optimizer.weight_decay", kReal, "0.01", 0, {}, "Decay of the weights; decoupled with adamw."},
      {"optimizer.momentum", kReal, "0.9", 0, {}, "Momentum of sgd."},
      {"optimizer.fused", kBool, "false", kNone, {}, "One fused update for all parameters, not one by one."},
      {"optimizer.zero_to_none",
       kBool,
       "true",
       kNone,
       {},
       "Gradients are dropped after a step, not filled with zeros."},
      {"optimizer.warmup_steps", kInt, "0", 0, {}, "Steps over which the learning rate rises to its value."},
      {"optimizer.schedule",
       kChoice,
       "constant",
       kNone,
       {"constant", "cosine", "step", "one-cycle"},
       "How the learning rate goes on after the warm-up."},
      {"optimizer.decay_steps", kInt, "1000", 1, {}, "Steps between two decays of the schedule step."},
      {"optimizer.decay_factor", kReal, "0.1", 0, {}, "What one decay of the schedule step multiplies the rate with."},
      {"ema.decay", kReal, "0", 0, {}, "Share of the average of the weights that a step keeps; 0: no average."},
      {"grad.clip_norm", kReal, "0", 0, {}, "Largest norm of all gradients together; 0: no clipping."},
      {"grad.checkpointing", kBool, "false", kNone, {}, "Recompute blocks in the backward pass to save memory."},
      {"metrics.interval", kInt, "1", 1, {}, "Steps between two readings of the loss by the host."},
      {"memory.flush_interval",
       kInt,
       "0",
       0,
       {},
       "Steps between two flushes of the memory that torch keeps for later steps; 0: none."},
      {"cache.features",
       kChoice,
       "off",
       kNone,
       {"off", "memory", "disk"},
       "memory: what was decoded or predicted once is kept; disk: in the feature cache."},
      {"cache.memory_mib", kInt, "1024", 1, {}, "Budget of that cache, in MiB."},
      {"cache.folder", kText, "", kNone, {}, "Folder of the feature cache; by default the one of unidle cache."},
      {"cpu.threads", kInt, "0", 0, {}, "Threads that compute; 0: as many as this process may use."},
      {"cpu.numa",
       kChoice,
       "off",
       kNone,
       {"off", "auto"},
       "auto: the process keeps to the NUMA node of its GPU, or to its share of the nodes."},
      {"ranks.timeout_s", kInt, "600", 1, {}, "How long to wait for another process of the run, in seconds."},
      {"train.samples", kInt, traits::kRunSamples, 1, {}, "Length of the run, in samples; whole steps."},
      {"train.samples_on_gpu",
       kInt,
       "0",
       0,
       {},
       "Length of the run on a GPU, unless the command line gives train.samples; 0: train.samples."},
      {"train.deterministic",
       kBool,
       "false",
       kNone,
       {},
       "Only operations that give the same bits each time; others end the run by name."},
      {"train.on_nan",
       kChoice,
       "stop",
       kNone,
       {"stop", "skip", "go-on"},
       "What to do when the loss or the gradients are not finite."},
      {"train.warmup_samples", kInt, "32", 0, {}, "Samples at the start that the rate leaves out."},
      {"validation.interval",
       kReal,
       "1",
       0,
       {},
       "Epochs between two validations, also parts of one; 0: only at the end."},
      {"validation.batch", kInt, "0", 0, {}, "Samples in a batch of validation; 0: as batch.size."},
      {"checkpoint.interval", kInt, "0", 0, {}, "Samples between two checkpoints; 0: none."},
      {"checkpoint.keep", kInt, "2", 1, {}, "How many checkpoints stay; the oldest goes first."},
      {"checkpoint.folder",
       kText,
       "",
       kNone,
       {},
       "Where checkpoints go; by default checkpoints/WORKLOAD in the home folder."},
      {"script.model", kText, "", kNone, {}, "TorchScript file that the workload torchscript trains."},
      {"script.table", kText, "", kNone, {}, "CSV file, or a folder of them, that it learns from."},
      {"script.targets", kText, "", kNone, {}, "Columns that it predicts, with commas between."},
      {"script.loss",
       kChoice,
       "mse",
       kNone,
       {"mse", "l1", "cross-entropy", "binary-cross-entropy"},
       "Its loss; the last two take logits."},
      {"script.metric",
       kChoice,
       "auto",
       kNone,
       {"auto", "rmse", "mae", "accuracy"},
       "Its metric on the held-out rows; auto: accuracy where the loss takes logits, else rmse."},
      {"script.held_out", kReal, "0.2", 0, {}, "Share of the rows that are held out, below 1."},
      {"script.standardize", kBool, "true", kNone, {}, "Features less their mean, over their deviation."},
      {"loss.perceptual_weight", kReal, "0", 0, {}, "Weight of the distance of deep features in the loss."},
      {"loss.perceptual_features", kText, "", kNone, {}, "TorchScript file that makes those features of a picture."},
  };
  return settings;
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

const std::vector<Setting>& all_settings() { return known_settings(); }

void add_settings(const std::vector<Setting>& more) {
  for (const Setting& setting : more) {
    const std::string name(setting.name);
    if (find_setting(name) != nullptr) {
      throw Error(ErrorCode::kInput, name, "is a key of the engine already", "give the workload's key another name");
    }
    known_settings().push_back(setting);
    try {
      Config::from_text("workload: w\n", "defaults", {name + "=" + std::string(setting.fallback)});
    } catch (const Error& error) {
      known_settings().pop_back();
      throw Error(ErrorCode::kInput, name, "has a default that is not of its type: " + error.message());
    }
  }
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

std::string_view section_of(std::string_view name) { return name.substr(0, name.size() - last_part(name).size()); }

/// Not a typing error when more than half of the last part's letters differ. A short one in another section may differ
/// in one letter: "nope" is not "mode".
bool are_alike(std::string_view asked, std::string_view known) {
  const std::size_t distance = edit_distance(last_part(asked), last_part(known));
  const std::size_t length = last_part(known).size();
  return 2 * distance <= std::max(last_part(asked).size(), length) &&
         (length > 5 || distance <= 1 || section_of(asked) == section_of(known));
}

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
    if (!are_alike(name, setting.name)) {
      // A section without key: suggest its first key.
      if (setting.name.starts_with(name) && setting.name.substr(name.size()).starts_with('.')) {
        offer(setting.name, 1);
      }
      continue;
    }
    offer(setting.name, 2 * edit_distance(name, setting.name));
    // A key in the wrong section is as common as a misspelt one: the last part counts too, a little less.
    offer(setting.name, 2 * edit_distance(last_part(name), last_part(setting.name)) + 3);
  }
  return best;
}

}  // namespace unidle::train
