#include "unidle/knobs/framework.h"

#include <gtest/gtest.h>

#include <set>

#include "unidle/knobs/detail/encoding.h"
#include "unidle/knobs/recognize.h"

namespace unidle::knobs {
namespace {

TEST(Frameworks, SaysWhereEachWasRead) {
  std::set<std::string> names;
  for (const Framework& framework : all_frameworks()) {
    EXPECT_TRUE(names.insert(framework.name).second) << framework.name;
    EXPECT_FALSE(framework.source.empty()) << framework.name;
    EXPECT_FALSE(framework.signatures.empty()) << framework.name;
  }
}

TEST(Frameworks, KnobsOfTheTableAreKnown) {
  for (const Framework& framework : all_frameworks()) {
    for (const Vocabulary& vocabulary : framework.vocabulary) {
      ASSERT_NE(find_knob(vocabulary.knob), nullptr) << framework.name;
      // Without a word for "off" there would be nothing to replace.
      EXPECT_GE(vocabulary.words.size(), 2u) << framework.name;
      EXPECT_EQ(words_at(framework.name, vocabulary.knob, "a.b." + vocabulary.key), &vocabulary.words);
    }
    for (const Addition& addition : framework.additions) {
      EXPECT_NE(find_knob(addition.knob), nullptr) << framework.name << ": " << addition.key;
    }
    for (const Agreement& agreement : framework.agreements) {
      EXPECT_NE(find_knob(agreement.knob), nullptr) << framework.name;
      EXPECT_FALSE(agreement.reason.empty()) << framework.name;
    }
  }
  EXPECT_EQ(words_at("composer", "precision.amp", "other"), nullptr);
  EXPECT_EQ(words_at("pytorch", "precision.amp", "precision"), nullptr);
}

TEST(Frameworks, TheMoreSpecificIsRecognised) {
  const auto told = [](const char* text) { return framework_of(ConfigFile::from_text(text, "c.yaml")); };
  EXPECT_EQ(told("exp_manager: {}\ntrainer: {strategy: ddp, log_every_n_steps: 1}\nmodel: {}\nexp_manager.x: 1\n"),
            "nemo");
  EXPECT_EQ(told("dataloader_num_workers: 4\nepoch_counter: 1\ncheckpointer: 2\n"), "speechbrain");
  EXPECT_EQ(told("checkpoint_dir: a\nout_dir: b\nlora_r: 8\ntrain: {micro_batch_size: 1}\n"), "litgpt");
  EXPECT_EQ(
      told("out_dir: b\nsave_interval: 9\ntokenizer_dir: c\ninitial_checkpoint_dir:\ntrain: {micro_batch_size: 1}\n"),
      "litgpt-pretrain");
  EXPECT_EQ(told("exp_manager: {}\nsave_interval: 1\nmicro_batch_size: 1\nlr_warmup_steps: 1\nmegatron_amp_O2: true\n"),
            "nemo");
  EXPECT_EQ(told("global_train_batch_size: 8\nmax_duration: 1ep\nsave_interval_unsharded: 9\ngen1_gc_interval: 1\n"),
            "olmo");
  EXPECT_EQ(told("global_train_batch_size: 8\nmax_duration: 1ep\nscheduler: {t_warmup: 9ba}\n"), "composer");
  EXPECT_EQ(told("base_model: a\nmicro_batch_size: 1\n"), "axolotl");
}

}  // namespace
}  // namespace unidle::knobs
