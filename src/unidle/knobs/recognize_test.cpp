#include "unidle/knobs/recognize.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>

#include "unidle/base/files.h"

namespace unidle::knobs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Recognition read(const std::string& text, const std::string& name = "c.yaml") {
  return recognize(ConfigFile::from_text(text, name));
}

/// "knob=value" for each setting, with the value's meaning and a mark for validation if they are not the usual ones.
std::vector<std::string> found(const std::string& text, const std::string& name = "c.yaml") {
  std::vector<std::string> lines;
  for (const Recognized& setting : read(text, name).knobs) {
    std::string line = fmt::format("{}={}", setting.knob, setting.means.value_or("?"));
    line += setting.meaning == Meaning::kGlobalBatch ? " global" : setting.meaning == Meaning::kOption ? " option" : "";
    lines.push_back(line + (setting.phase == Phase::kValidation ? " validation" : ""));
  }
  return lines;
}

TEST(Recognize, ReadsKeysByTheirWords) {
  for (const char* key : {"num_workers", "NUM_WORKERS", "numWorkers", "num-workers", "workers", "n_workers",
                          "dataloader_num_workers", "workers_per_gpu", "train_num_workers"}) {
    EXPECT_THAT(found(std::string(key) + ": 4\n"), ElementsAre("loader.workers=4")) << key;
  }
  EXPECT_THAT(found("bs: 4\n"), ElementsAre("batch.size=4"));
  EXPECT_THAT(found("learning_rate: 1e-3\n"), ElementsAre("optimizer.lr=0.001"));
  EXPECT_THAT(found("accumulate_grad_batches: 2\n"), ElementsAre("batch.accumulation=2"));
  EXPECT_THAT(found("gradient_accumulate_every: 2\n"), ElementsAre("batch.accumulation=2"));
  EXPECT_THAT(found("fsdp_config: {fsdp_activation_checkpointing: false}\n"), ElementsAre("grad.checkpointing=false"));
  EXPECT_THAT(found("evaluators: [{data: {num_workers: 0}}]\n"), ElementsAre("loader.workers=0 validation"));
  EXPECT_THAT(found("optim:\n  params:\n    fused: True\n"), ElementsAre("optimizer.fused=true"));
  EXPECT_THAT(found("torch_compile:\n  enable: false\n  mode: max-autotune\n"),
              ElementsAre("compile.mode=off", "compile.mode=? option"));
}

TEST(Recognize, ReadsLongerNamesOfFrameworks) {
  EXPECT_THAT(found("max_data_loader_n_workers: 4\n"), ElementsAre("loader.workers=4"));
  EXPECT_THAT(found("max_workers: 4\n"), IsEmpty()) << "of any pool";
  EXPECT_THAT(found("optimizer: {metrics_log_interval: 10}\n"), ElementsAre("metrics.interval=10"));
  EXPECT_THAT(found("scheduler: {t_warmup: 2000}\n"), ElementsAre("optimizer.warmup_steps=2000"));
  EXPECT_THAT(found("lr_wav2vec: 0.0001\n"), ElementsAre("optimizer.lr=0.0001"));
  EXPECT_THAT(found("clip_grad: {max_norm: 3.0}\n"), ElementsAre("grad.clip_norm=3"))
      << "general alone, not below this";
  EXPECT_THAT(found("image: {max_norm: 3.0}\n"), IsEmpty());
}

TEST(Recognize, TheNearestKeyDecides) {
  EXPECT_THAT(found("Scheduler_cfg: {args: {optimizer_args: {lr: 0.1}}}\n"), ElementsAre("optimizer.lr=0.1"));
  EXPECT_THAT(found("optimizer: {scheduler: {lr: 0.1}}\n"), IsEmpty());
  EXPECT_THAT(found("model: {precision: 16-mixed}\n"), ElementsAre("precision.amp=fp16"));
  EXPECT_THAT(found("model: {precision: fp16}\n"), IsEmpty());
  EXPECT_THAT(found("log_iters: 100\ndata_gen: {batch_size: 1200, precision: 32}\n"),
              ElementsAre("metrics.interval=100"));
  EXPECT_THAT(found("acc_grad: 3\nacc: 2\n"), ElementsAre("batch.accumulation=3"));
  EXPECT_THAT(found("hooks: [{type: IterationTimer, warmup_iter: 2}]\n"), IsEmpty());
  EXPECT_THAT(found("search_space: {gru: {batch_size: [32, 64], lr: 0.1}}\nbatch_size: 8\n"),
              ElementsAre("batch.size=8"));
}

TEST(Recognize, FollowsReferencesOfHyperPyYaml) {
  EXPECT_THAT(found("num_workers: 4\ntrain_dataloader_opts:\n  num_workers: !ref <num_workers>\n"),
              ElementsAre("loader.workers=4", "loader.workers=4"));
  EXPECT_THAT(found("grad_accumulation_factor: 2\n"), ElementsAre("batch.accumulation=2"));
  EXPECT_THAT(found("report_every: 50\n"), ElementsAre("metrics.interval=50"));
}

TEST(Recognize, WordsOfFairseqAndMmengine) {
  EXPECT_THAT(found("optimization: {clip_norm: 1}\n"), ElementsAre("grad.clip_norm=1"));
  EXPECT_THAT(found("lr_scheduler: {warmup_updates: 4000}\n"), ElementsAre("optimizer.warmup_steps=4000"));
  const char* fairseq =
      "distributed_training: {ddp_backend: c10d}\ncommon: {log_format: json, tensorboard_logdir: tb}\n";
  EXPECT_THAT(found(fmt::format("{}optimization: {{lr: 1}}\ndataset: {{validate_interval: 5}}\n", fairseq)),
              ElementsAre("optimizer.lr=1", "validation.interval=5"));
  EXPECT_THAT(found("dataset: {validate_interval: 5000}\n"), IsEmpty()) << "elsewhere it may count steps";
  EXPECT_THAT(found("default_hooks: {logger: {interval: 100}, checkpoint: {interval: 3}}\n"),
              ElementsAre("metrics.interval=100"));
}

TEST(Recognize, TellsBatchesApart) {
  EXPECT_THAT(found("global_batch_size: 64\nmicro_batch_size: 4\neval_batch_size: 8\n"),
              ElementsAre("batch.size=64 global", "batch.size=4", "batch.size=8 validation"));
  EXPECT_THAT(found("train_batch_size: 64\n"), ElementsAre("batch.size=64"));
  EXPECT_THAT(found("{\"train_batch_size\": 64, \"zero_optimization\": {\"stage\": 1}}", "ds.json"),
              ElementsAre("batch.size=64 global"));
  EXPECT_THAT(found("train_batch_size: 64\ndevice_train_microbatch_size: 4\nmax_duration: 1ep\n"),
              ElementsAre("batch.size=64 global", "batch.size=4"));
  EXPECT_THAT(found("val:\n  loader: {batch_size: 2}\ntrain:\n  loader: {batch_size: 4}\n"),
              ElementsAre("batch.size=2 validation", "batch.size=4"));
}

TEST(Recognize, RejectsLookAlikes) {
  for (const char* text : {"zero_optimization: {offload_param: {pin_memory: true}}\n",
                           "preprocessing_num_workers: 8\n",
                           "dataset_num_proc: 8\n",
                           "structure_prediction: {batch_size: 4}\n",
                           "min_lr: 1e-6\n",
                           "warmup_lr: 1e-6\n",
                           "lr_decay: 0.1\n",
                           "scheduler: {lr: 1}\n",
                           "stage3_prefetch_bucket_size: 5\n",
                           "export_dtype: float32\n",
                           "model: {encoder: {use_fp16: true}}\n",
                           "# num_workers: 4\nx: 1\n",
                           "num_workers: many\n",
                           "pin_memory: 3\n",
                           "precision: 4\n",
                           "batch: 4\n",
                           "batch_size:\n",
                           "fsdp_config: {mixed_precision: PURE}\n",
                           "bias_gelu_fusion: true\n",
                           "text: |\n  num_workers: 4\n",
                           "auto_scale_lr: {base_batch_size: 256}\n",
                           "batch_size_per_image: 512\n",
                           "lr_scheduler: cosine\n",
                           "tools: [{config: {num_workers: 10}}]\n",
                           "reward_model: {num_workers: 8}\n",
                           "algorithms: {low_precision_layernorm: {precision: amp_fp16}}\n",
                           "half: true\n"}) {
    EXPECT_THAT(found(text), IsEmpty()) << text;
  }
  EXPECT_EQ(read("min_lr: 1e-6\nx:\n").others.size(), 1u) << "a key without a value is not set";
  EXPECT_EQ(read("a: 1\nmin_lr: 1e-6\n").others.at(1).line, 2);
}

TEST(Recognize, TakesGeneralWordsOnlyInCompany) {
  EXPECT_THAT(found("batch: 16\nworkers: 8\n"), ElementsAre("batch.size=16", "loader.workers=8"));
  EXPECT_THAT(found("a: {dtype: bf16}\nb: {num_workers: 1}\n"), ElementsAre("loader.workers=1"));
}

TEST(Recognize, UnderstandsPrecision) {
  const auto amp = [](const std::string& text) {
    const auto all = configured(read(text));
    const auto value = all.find("precision.amp");
    return value == all.end() ? std::string("?") : value->second.value;
  };
  EXPECT_EQ(amp("bf16: true\nfp16: false\n"), "bf16");
  EXPECT_EQ(amp("fp16: {enabled: true}\n"), "fp16");
  EXPECT_EQ(amp("use_amp: true\namp_dtype: float16\n"), "fp16");
  EXPECT_EQ(amp("use_amp: false\namp_dtype: float16\n"), "off");
  EXPECT_EQ(amp("use_amp: true\n"), "?") << "in which format, the program knows";
  EXPECT_EQ(amp("use_amp: false\nuse_bf16: true\n"), "?") << "they contradict each other";
  EXPECT_EQ(amp("amp: bf16\n"), "bf16");
  EXPECT_EQ(amp("trainer: {precision: bf16-mixed}\n"), "bf16");
  EXPECT_EQ(amp("trainer: {precision: 32}\n"), "off");
  EXPECT_EQ(amp("bf16: auto\n"), "?");
  EXPECT_EQ(amp("mixed_precision: fp8\n"), "?");
}

TEST(Recognize, FollowsReferences) {
  const Recognition hydra = read(
      "n: 3\ndata:\n  num_workers: ${n}\nother:\n  start_value: ${base_lr}\nbase_lr: 0.1\n"
      "lr:\n  end_value: ${base_lr}\n  start_value: ${base_lr}\n");
  std::vector<std::string> lines;
  for (const Recognized& setting : hydra.knobs) {
    lines.push_back(fmt::format("{}:{} from {}", setting.line, setting.path, setting.literal));
  }
  EXPECT_THAT(lines,
              ElementsAre("3:data.num_workers from n", "6:base_lr from base_lr", "9:lr.start_value from base_lr"));
  EXPECT_EQ(hydra.knobs[0].means, 3);
  const Recognition computed = read("num_workers: ${oc.env:N,4}\n");
  EXPECT_EQ(computed.knobs.at(0).means, std::nullopt);
  EXPECT_EQ(computed.knobs.at(0).literal, "");
}

TEST(Recognize, ListsWrittenPlacesOnly) {
  const Recognition merged = read(
      "a: &a {batch_size: 4, lr: 1}\nb:\n  <<: *a\n  lr: 2\nc: {num_workers: &n 3}\n"
      "d: {num_workers: *n}\n");
  std::vector<std::string> paths;
  for (const Recognized& setting : merged.knobs) {
    paths.push_back(setting.path);
  }
  EXPECT_THAT(paths, ElementsAre("a.batch_size", "a.lr", "b.lr", "c.num_workers", "d.num_workers"));
  EXPECT_EQ(merged.knobs.back().line, 6);
}

TEST(Recognize, LeavesOutWhatContradictsItself) {
  const auto all = configured(read("one: {batch_size: 2, num_workers: 4}\ntwo: {batch_size: 8, num_workers: 4}\n"));
  EXPECT_FALSE(all.contains("batch.size"));
  EXPECT_EQ(all.at("loader.workers").value, 4);
  EXPECT_EQ(all.at("loader.workers").path, "one.num_workers");
  EXPECT_EQ(all.at("loader.workers").line, 1);
}

TEST(Recognize, NamesTheFramework) {
  EXPECT_EQ(read("SOLVER: {IMS_PER_BATCH: 16, BASE_LR: 1}\n").framework, "detectron2");
  EXPECT_EQ(read("per_device_train_batch_size: 4\n").framework, "huggingface");
  EXPECT_EQ(read("trainer: {max_epochs: 1, accumulate_grad_batches: 2}\nseed_everything: 1\n").framework, "lightning");
  EXPECT_EQ(read("optim_wrapper = dict()\ntrain_dataloader = dict(batch_size=2)\ntrain_cfg = dict(x=1)\n"
                 "optim_wrapper = dict(type='A')\n",
                 "c.py")
                .framework,
            "mmengine");
  EXPECT_EQ(read("workload: superres\nloader: {workers: 1}\n").framework, "unidle");
  EXPECT_EQ(read("batch_size: 4\n").framework, "pytorch");
}

TEST(Recognize, EveryKnobUnderItsOwnName) {
  for (const Knob* knob : all_catalogue()) {
    const std::string value = knob->fallback.value_or(1).to_text();
    const std::size_t dot = knob->name.find('.');
    const std::string text = knob->name.substr(0, dot) + ":\n  " + knob->name.substr(dot + 1) + ": " + value + "\n";
    EXPECT_THAT(found(text), ElementsAre(knob->name + "=" + value));
  }
}

std::string tag_of(const Recognized& setting) {
  static const std::map<std::string, std::string> kTags = {
      {"batch.size", "batch"},
      {"loader.workers", "workers"},
      {"loader.pin_memory", "pin_memory"},
      {"loader.prefetch_factor", "prefetch"},
      {"loader.persistent_workers", "persistent"},
      {"precision.amp", "amp"},
      {"precision.tf32", "tf32"},
      {"compile.mode", "compile"},
      {"batch.accumulation", "accum"},
      {"optimizer.lr", "lr"},
      {"optimizer.fused", "fused"},
      {"layout.channels_last", "channels_last"},
  };
  const auto found = kTags.find(setting.knob);
  if (found == kTags.end()) {
    return {};
  }
  std::string tag = found->second;
  if (setting.meaning == Meaning::kGlobalBatch) {
    tag += ".global";
  } else if (setting.meaning == Meaning::kOption) {
    tag += ".opt";
  } else if (setting.meaning == Meaning::kFormat) {
    tag = "precision";
  }
  return tag + (setting.phase == Phase::kValidation ? ".eval" : "");
}

/// Lines "tag path source".
using Expected = std::set<std::string>;

/// The text between the next two backquotes after `at`; moves `at` past them.
std::string quoted(const std::string& text, std::size_t& at) {
  const std::size_t begin = text.find('`', at);
  const std::size_t end = begin == std::string::npos ? begin : text.find('`', begin + 1);
  if (end == std::string::npos) {
    at = std::string::npos;
    return {};
  }
  at = end + 1;
  return text.substr(begin + 1, end - begin - 1);
}

void read_pairs(const std::string& tag, const std::string& list, Expected& expected) {
  for (std::size_t at = 0; at < list.size();) {
    const std::string path = quoted(list, at);
    const std::string value = at == std::string::npos ? "" : quoted(list, at);
    if (at != std::string::npos) {
      expected.insert(fmt::format("{} {} {}", tag, path, value));
    }
  }
}

/// Reads the README's table and the list below it, by file.
std::map<std::string, Expected> read_expected(const std::string& readme) {
  std::map<std::string, Expected> expected;
  for (std::size_t at = 0; at < readme.size();) {
    const std::size_t end = std::min(readme.find('\n', at), readme.size());
    const std::string line = readme.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("## Look-alikes")) {
      break;
    }
    const std::size_t cell = line.size() < 3 ? std::string::npos : line.rfind("| ", line.size() - 3);
    const bool row = line.starts_with("| ") && !line.starts_with("| file ") && line.find("` = `") != std::string::npos;
    if (row) {
      const std::string file = line.substr(2, line.find(" |") - 2);
      std::string cells = line.substr(cell + 2);
      for (std::size_t part = 0; part < cells.size();) {
        const std::size_t stop = std::min(cells.find("<br>", part), cells.size());
        const std::string pair = cells.substr(part, stop - part);
        read_pairs(pair.substr(0, pair.find(':')), pair, expected[file]);
        part = stop + 4;
      }
    } else if (line.starts_with("- ") && line.find("` = `") != std::string::npos) {
      read_pairs(line.substr(2, line.find(" (") - 2), line, expected["DeepLearningExamples__configs.yml"]);
    }
  }
  return expected;
}

TEST(Recognize, RealConfigurations) {
  const char* shared = std::getenv("UNIDLE_SHARED");
  if (shared == nullptr) {
    GTEST_SKIP() << "UNIDLE_SHARED is not set";
  }
  const std::filesystem::path folder = std::filesystem::path(shared) / "real/configs";
  const auto expected = read_expected(read_file(folder / "README.md"));
  std::size_t right = 0;
  std::size_t wrong = 0;
  std::size_t missed = 0;
  std::size_t total = 0;
  for (const auto& [name, wanted] : expected) {
    total += wanted.size();
    Expected found;
    for (const Recognized& setting : recognize(folder / name).knobs) {
      if (const std::string tag = tag_of(setting); !tag.empty()) {
        found.insert(fmt::format("{} {} {}", tag, setting.path, setting.source));
      }
    }
    for (const std::string& line : found) {
      const bool is_right = wanted.contains(line);
      right += is_right;
      wrong += !is_right;
      if (!is_right) {
        fmt::print("{}: wrong  {}\n", name, line);
      }
    }
    for (const std::string& line : wanted) {
      if (!found.contains(line)) {
        ++missed;
        fmt::print("{}: missed {}\n", name, line);
      }
    }
  }
  const double precision = static_cast<double>(right) / static_cast<double>(right + wrong);
  const double recall = static_cast<double>(right) / static_cast<double>(right + missed);
  fmt::print("{} files, {} settings: precision {:.3f}, recall {:.3f}\n", expected.size(), total, precision, recall);
  EXPECT_EQ(expected.size(), 18u);
  EXPECT_EQ(total, 245u) << "the table was not read as it says";
  EXPECT_GE(precision, 0.98);
  EXPECT_GE(recall, 0.95);
}

}  // namespace
}  // namespace unidle::knobs
