#include "unidle/tune/advice/foreign_advice.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "unidle/tune/advice/gpu_table.h"

namespace unidle::tune {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Hardware machine(const char* device, double cpus) {
  Hardware hardware;
  hardware.cpus = cpus;
  return with_device(hardware, device);
}

std::string advised(std::string text, const Hardware& hardware, Profile profile = Profile::kBalanced,
                    const std::string& name = "c.yaml") {
  knobs::ConfigFile config = knobs::ConfigFile::from_text(std::move(text), name);
  advise_foreign(config, hardware, profile);
  return config.text();
}

TEST(ForeignAdvice, GivesTheLoaderWorkers) {
  EXPECT_EQ(advised("num_workers: 0\nlr: 1\n", machine("A100 40GB", 8)), "num_workers: 7\nlr: 1\n");
  EXPECT_EQ(advised("num_workers: 0\n", machine("cpu", 8)), "num_workers: 4\n");
  EXPECT_EQ(advised("num_workers: 64\n", machine("A100 40GB", 8)), "num_workers: 7\n");
  EXPECT_EQ(advised("num_workers: 4\n", machine("A100 40GB", 8)), "num_workers: 4\n");
  Hardware shared = machine("A100 40GB", 32);
  shared.gpus = 4;
  EXPECT_EQ(advised("num_workers: 0\n", shared), "num_workers: 7\n");
}

TEST(ForeignAdvice, SharesTheCpusAmongTheGpusThatTheFileAsksFor) {
  EXPECT_EQ(advised("trainer: {devices: 4}\nnum_workers: 0\n", machine("A100 40GB", 16)),
            "trainer: {devices: 4}\nnum_workers: 3\n");
  EXPECT_EQ(advised("trainer: {devices: 4}\nnum_workers: 0\n", machine("cpu", 8)),
            "trainer: {devices: 4}\nnum_workers: 4\n");
}

TEST(ForeignAdvice, LeavesTheLoaderOfATrainingThatGeneratesItsSamples) {
  const char* text = "per_device_train_batch_size: 4\nnum_generations: 8\nlogging_steps: 1\n";
  EXPECT_EQ(advised(text, machine("A100 40GB", 8)), text);
  EXPECT_EQ(advised("ppo: {clip: 0.2}\nnum_workers: 64\n", machine("A100 40GB", 8)),
            "ppo: {clip: 0.2}\nnum_workers: 7\n");
}

TEST(ForeignAdvice, LeavesAPrecisionThatContradictsItself) {
  const char* text = "policy: {use_amp: false, use_bf16: true}\nbatch_size: 4\n";
  EXPECT_EQ(advised(text, machine("A100 40GB", 8)), text);
  EXPECT_EQ(advised(text, machine("V100 32GB", 8)), text);
}

TEST(ForeignAdvice, KnowsTheDefaultOfTheFramework) {
  EXPECT_EQ(advised("per_device_train_batch_size: 4\n", machine("A100 40GB", 4)),
            "per_device_train_batch_size: 4\ndataloader_num_workers: 3\n");
  EXPECT_EQ(advised("batch_size: 4\nlr: 1\n", machine("A100 40GB", 4)), "batch_size: 4\nlr: 1\n");
}

TEST(ForeignAdvice, ChoosesTheFormatOfTheDevice) {
  const char* text = "trainer:\n  precision: 32-true\n  max_epochs: 1\n";
  EXPECT_THAT(advised(text, machine("H100", 4)), HasSubstr("precision: bf16-mixed"));
  EXPECT_THAT(advised(text, machine("T4", 4)), HasSubstr("precision: 16-mixed"));
  EXPECT_EQ(advised(text, machine("GTX 1080 Ti", 4)), text) << "no matrix units";
  EXPECT_EQ(advised(text, machine("cpu", 4)), text);
  EXPECT_EQ(advised(text, machine("H100", 4), Profile::kLight), text) << "rounding changes";
}

TEST(ForeignAdvice, LeavesAFormatThatTheRunWouldNotSurvive) {
  const std::string litgpt = "checkpoint_dir: a\nout_dir: b\ntrain: {micro_batch_size: 1}\nprecision: bf16-";
  EXPECT_EQ(advised(litgpt + "true\n", machine("T4", 4)), litgpt + "true\n") << "weights in fp16, no scaler";
  EXPECT_EQ(advised(litgpt + "mixed\n", machine("T4", 4)),
            "checkpoint_dir: a\nout_dir: b\ntrain: {micro_batch_size: 1}\nprecision: 16-mixed\n");
  const char* pretrain = "initial_checkpoint_dir:\ntokenizer_dir: a\nprecision: bf16-mixed\n";
  EXPECT_EQ(advised(pretrain, machine("T4", 4)), pretrain) << "its parser refuses fp16";
  const std::string kohya = "network_module: networks.lora\nnetwork_dim: 8\nmixed_precision: bf16\nfull_bf16: ";
  EXPECT_EQ(advised(kohya + "true\n", machine("T4", 4)), kohya + "true\n") << "sd-scripts stops at the start";
  EXPECT_THAT(advised(kohya + "false\n", machine("T4", 4)), HasSubstr("mixed_precision: fp16"));
  const char* olmo = "save_interval_unsharded: 9\ngen1_gc_interval: 1\nprecision: amp_bf16\n";
  EXPECT_EQ(advised(olmo, machine("T4", 4)), olmo) << "no gradient scaler";
}

TEST(ForeignAdvice, DoesNotNameAFormatThatTheProgramChooses) {
  const auto reason = [](const std::string& text) {
    knobs::ConfigFile config = knobs::ConfigFile::from_text(text, "c.yaml");
    const ForeignAdvice advice = advise_foreign(config, machine("H100", 8), Profile::kBalanced);
    return advice.changes.empty() ? "" : advice.changes[0].reason;
  };
  EXPECT_THAT(reason("use_amp: false\nlr: 1\n"), HasSubstr("the program chooses one"));
  EXPECT_THAT(reason("use_amp: false\namp_dtype: float16\nlr: 1\n"), HasSubstr("matrix units for bf16"));
}

TEST(ForeignAdvice, ReadsTheLossRarelyOnlyWhereThatMakesADeviceWait) {
  EXPECT_EQ(advised("logging_steps: 1\nlr: 1\n", machine("H100", 4)), "logging_steps: 50\nlr: 1\n");
  EXPECT_EQ(advised("logging_steps: 1\nlr: 1\n", machine("cpu", 4)), "logging_steps: 1\nlr: 1\n");
}

TEST(ForeignAdvice, HoldsTheEffectiveBatch) {
  const char* text = "batch_size: 6\ngradient_accumulation_steps: 8\n";
  EXPECT_EQ(advised(text, machine("A100 80GB", 4), Profile::kFast), "batch_size: 8\ngradient_accumulation_steps: 6\n");
  EXPECT_EQ(advised(text, machine("A100 80GB", 4)), text);
  EXPECT_EQ(advised(text, machine("T4", 4), Profile::kFast), text) << "little memory";
  EXPECT_EQ(advised("batch_size: 6\n", machine("A100 80GB", 4), Profile::kFast), "batch_size: 6\n");
}

TEST(ForeignAdvice, TellsWhatItCouldNotSay) {
  knobs::ConfigFile config = knobs::ConfigFile::from_text("num_workers: 0\nuse_fp16: false\n", "c.yaml");
  const ForeignAdvice advice = advise_foreign(config, machine("H100", 8), Profile::kBalanced);
  EXPECT_THAT(advice.left, Contains(HasSubstr("precision.amp=bf16")));
  EXPECT_EQ(config.text(), "num_workers: 7\nuse_fp16: false\n");
  ASSERT_EQ(advice.changes.size(), 1u);
  EXPECT_EQ(advice.changes[0].from, 0);
  EXPECT_EQ(advice.changes[0].to, 7);
  EXPECT_THAT(advice.changes[0].paths, Contains("num_workers"));
  EXPECT_FALSE(advice.changes[0].depends.empty());
}

std::vector<std::string> left_of(const std::string& text, const char* device = "H100") {
  knobs::ConfigFile config = knobs::ConfigFile::from_text(text, "c.yaml");
  const ForeignAdvice advice = advise_foreign(config, machine(device, 8), Profile::kFast);
  EXPECT_EQ(config.text(), text);
  return advice.left;
}

TEST(ForeignAdvice, LeavesADecisionAloneAndQuotesIt) {
  EXPECT_THAT(
      left_of("num_workers: 0  # debuggers do not like workers\n"),
      Contains(HasSubstr("c.yaml:1: num_workers is set on purpose, its comment says: debuggers do not like workers")));
  EXPECT_THAT(left_of("trainer:\n  strategy: ddp\n  log_every_n_steps: 50\n  # only works with 32-bit precision\n"
                      "  precision: 32\n"),
              Contains(HasSubstr("only works with 32-bit precision")));
  EXPECT_EQ(advised("num_workers: 0  # number of workers\n", machine("H100", 8)),
            "num_workers: 7  # number of workers\n");
  const char* batch = "batch_size: 2  # more runs out of memory on 24 GB, OOM\naccumulation_steps: 4\n";
  EXPECT_EQ(advised(batch, machine("H100", 8), Profile::kFast), batch);
}

TEST(ForeignAdvice, DoesNotGuessWords) {
  EXPECT_THAT(left_of("precision: fp32\nlr: 1\n"), Contains(HasSubstr("whether the program takes 'bf16'")));
  EXPECT_EQ(advised("precision: fp32  # bf16, fp16 or fp32\n", machine("H100", 8)),
            "precision: bf16  # bf16, fp16 or fp32\n");
}

TEST(ForeignAdvice, AShortRunStillLogs) {
  const auto interval = [](const char* steps) {
    const std::string text = advised(std::string("logging_steps: 1\nlearning_rate: 1\n") + steps, machine("H100", 8));
    return text.substr(15, text.find('\n') - 15);
  };
  EXPECT_EQ(interval("max_steps: 10\n"), "1");
  EXPECT_EQ(interval("max_steps: 300\n"), "20");
  EXPECT_EQ(interval("max_steps: 100000\n"), "50");
  EXPECT_EQ(interval("max_steps: -1\n"), "50");
}

TEST(ForeignAdvice, ABatchOfSeveralDevicesKeepsItsSize) {
  const std::string text = "batch_size: 2\ngradient_accumulation_steps: 8\npipeline_parallel_size: ";
  EXPECT_EQ(advised(text + "4\n", machine("A100 80GB", 4), Profile::kFast), text + "4\n");
  const std::string context = "batch_size: 1\ngradient_accumulation_steps: 2\ncontext_parallel_size: 2\n";
  EXPECT_EQ(advised(context, machine("A100 80GB", 4), Profile::kFast), context);
  EXPECT_NE(advised(text + "1\n", machine("A100 80GB", 4), Profile::kFast), text + "1\n");
}

TEST(ForeignAdvice, IsStableAndPromisesNothing) {
  const char* shared = std::getenv("UNIDLE_SHARED");
  if (shared == nullptr) {
    GTEST_SKIP() << "UNIDLE_SHARED is not set";
  }
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(shared) / "real/configs")) {
    if (entry.path().extension() == ".md") {
      continue;
    }
    for (const Profile profile : {Profile::kLight, Profile::kBalanced, Profile::kFast}) {
      knobs::ConfigFile config = knobs::ConfigFile::load(entry.path());
      const ForeignAdvice first = advise_foreign(config, machine("H100", 16), profile);
      EXPECT_GT(first.recognized, 2u) << entry.path();
      for (const knobs::Change& change : first.changes) {
        EXPECT_THAT(change.reason + change.depends, Not(HasSubstr("%"))) << entry.path();
      }
      if (profile != Profile::kFast) {  // fast may propose the next larger micro-batch
        EXPECT_THAT(advise_foreign(config, machine("H100", 16), profile).changes, IsEmpty()) << entry.path();
      }
    }
  }
}

}  // namespace
}  // namespace unidle::tune
