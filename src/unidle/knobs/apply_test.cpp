#include "unidle/knobs/apply.h"

#include <gmock/gmock.h>

#include "unidle/base/error.h"
#include "unidle/knobs/command_line.h"

namespace unidle::knobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

std::string turned(std::string text, std::string_view knob, const Value& value, const std::string& name = "c.yaml") {
  ConfigFile file = ConfigFile::from_text(std::move(text), name);
  set_knob(file, knob, value);
  return file.text();
}

/// The error message with which set_knob refuses; the new text if it succeeds.
std::string refusal(const std::string& text, std::string_view knob, const Value& value,
                    const std::string& name = "c.yaml") {
  try {
    return turned(text, knob, value, name);
  } catch (const Error& failure) {
    return failure.what();
  }
}

TEST(SetKnob, SpeaksTheWordsOfTheFile) {
  EXPECT_EQ(turned("num_workers: 0\n", "loader.workers", 4), "num_workers: 4\n");
  EXPECT_EQ(turned("DATALOADER:\n  NUM_WORKERS: 0  # n\n", "loader.workers", 4),
            "DATALOADER:\n  NUM_WORKERS: 4  # n\n");
  EXPECT_EQ(turned("pin_memory: False\n", "loader.pin_memory", true), "pin_memory: True\n");
  EXPECT_EQ(turned("no_pin_memory: yes\n", "loader.pin_memory", true), "no_pin_memory: no\n");
  EXPECT_EQ(turned("trainer:\n  precision: 32-true\n", "precision.amp", "bf16"), "trainer:\n  precision: bf16-mixed\n");
  EXPECT_EQ(turned("trainer:\n  precision: 32\n", "precision.amp", "fp16"), "trainer:\n  precision: 16\n");
  EXPECT_EQ(turned("precision: amp_fp16\n", "precision.amp", "bf16"), "precision: amp_bf16\n");
  EXPECT_EQ(turned("num_processes: 1\ndistributed_type: NO\nmixed_precision: 'no'\n", "precision.amp", "bf16"),
            "num_processes: 1\ndistributed_type: NO\nmixed_precision: 'bf16'\n");
  EXPECT_EQ(turned("amp_dtype: \"float16\"\nuse_amp: false\n", "precision.amp", "bf16"),
            "amp_dtype: \"bfloat16\"\nuse_amp: true\n");
  EXPECT_EQ(turned("memory_format: nchw\n", "layout.channels_last", true), "memory_format: nhwc\n");
  EXPECT_EQ(turned("torch_compile:\n  enabled: false\n  backend: x\n", "compile.mode", "default"),
            "torch_compile:\n  enabled: true\n  backend: x\n");
}

TEST(SetKnob, ATextNoIsAWordBesideFormatsAndNoSwitch) {
  EXPECT_EQ(turned("mixed_precision: \"no\"\n", "precision.amp", "bf16"), "mixed_precision: \"bf16\"\n");
  EXPECT_EQ(turned("train:\n  mixed_precision: 'no'  # x\n", "precision.amp", "fp16"),
            "train:\n  mixed_precision: 'fp16'  # x\n");
  EXPECT_EQ(turned("{\"mixed_precision\": \"no\"}", "precision.amp", "bf16", "c.json"),
            "{\"mixed_precision\": \"bf16\"}");
  EXPECT_EQ(turned("mixed_precision = \"no\"\n", "precision.amp", "bf16", "c.toml"), "mixed_precision = \"bf16\"\n");
  EXPECT_EQ(turned("mixed_precision = 'no'\n", "precision.amp", "bf16", "c.py"), "mixed_precision = 'bf16'\n");
  EXPECT_EQ(turned("amp: \"No\"\n", "precision.amp", "fp16"), "amp: \"fp16\"\n");
  EXPECT_EQ(turned("use_amp: no\n", "precision.amp", "bf16"), "use_amp: yes\n") << "a switch";
}

TEST(SetKnob, StaysAmongTheChoicesOfAnArgument) {
  const std::string amp = "p.add_argument('--amp-dtype', default='float16', ";
  EXPECT_EQ(turned(amp + "choices=['float16', 'bfloat16'])\n", "precision.amp", "bf16", "t.py"),
            "p.add_argument('--amp-dtype', default='bfloat16', choices=['float16', 'bfloat16'])\n");
  EXPECT_EQ(turned(amp + "choices=('float16', 'bf16'))\n", "precision.amp", "bf16", "t.py"),
            "p.add_argument('--amp-dtype', default='bf16', choices=('float16', 'bf16'))\n");
  EXPECT_THAT(refusal(amp + "choices=['float16', 'float32'])\n", "precision.amp", "bf16", "t.py"),
              HasSubstr("takes only float16, float32; none of them means bf16"));
  EXPECT_THAT(refusal("p.add_argument('--mixed_precision', choices=['no', 'fp16'], default='no')\n", "precision.amp",
                      "bf16", "t.py"),
              HasSubstr("takes only no, fp16"));
  EXPECT_EQ(turned("p.add_argument('--amp', choices=[\"off\", \"fp16\"], default=\"off\")\n", "precision.amp", "fp16",
                   "t.py"),
            "p.add_argument('--amp', choices=[\"off\", \"fp16\"], default=\"fp16\")\n");
  const std::string workers = "p.add_argument('-j', '--workers', type=int, default=4, choices=";
  EXPECT_THAT(refusal(workers + "[0, 4, 8])\n", "loader.workers", 15, "t.py"), HasSubstr("takes only 0, 4, 8"));
  EXPECT_EQ(turned(workers + "[0, 4, 8])\n", "loader.workers", 8, "t.py"),
            "p.add_argument('-j', '--workers', type=int, default=8, choices=[0, 4, 8])\n");
  EXPECT_THAT(refusal(workers + "range(9))\n", "loader.workers", 15, "t.py"), HasSubstr("takes only 4"));
  EXPECT_THAT(refusal("COUNTS = [2, 4]\n" + workers + "COUNTS)\n", "loader.workers", 15, "t.py"),
              HasSubstr("takes only 2, 4"));
  EXPECT_THAT(
      refusal("class Args:\n    precision: Literal['fp32', 'fp16'] = 'fp32'\n", "precision.amp", "bf16", "t.py"),
      HasSubstr("takes only fp32, fp16"));
}

TEST(SetKnob, KnowsTheWrapperOfMmengine) {
  EXPECT_EQ(turned("optim_wrapper = dict(type='OptimWrapper', x=1)\n", "precision.amp", "fp16", "c.py"),
            "optim_wrapper = dict(type='AmpOptimWrapper', x=1)\n");
  EXPECT_EQ(turned("optim_wrapper = dict(type='AmpOptimWrapper')\n", "precision.amp", "off", "c.py"),
            "optim_wrapper = dict(type='OptimWrapper')\n");
}

TEST(SetKnob, TurnsOneFlagOffAndTheOtherOn) {
  EXPECT_EQ(turned("fp16: true\nbf16: false\n", "precision.amp", "bf16"), "fp16: false\nbf16: true\n");
  EXPECT_EQ(turned("per_device_train_batch_size: 4\nfp16: true\n", "precision.amp", "bf16"),
            "per_device_train_batch_size: 4\nfp16: false\nbf16: true\n");
  EXPECT_THROW(turned("use_fp16: true\n", "precision.amp", "bf16"), Error) << "a plain program may not read use_bf16";
}

TEST(SetKnob, WritesTheWordsOfTheFramework) {
  const std::string composer = "global_train_batch_size: 64\nmax_duration: 1ep\n";
  EXPECT_EQ(turned(composer + "precision: fp32\n", "precision.amp", "bf16"), composer + "precision: amp_bf16\n");
  EXPECT_EQ(turned(composer + "precision: fp32\n", "precision.amp", "fp16"), composer + "precision: amp_fp16\n");
  EXPECT_EQ(turned(composer + "precision: bf16\n", "precision.amp", "off"), composer + "precision: fp32\n");
  const std::string nemo = "exp_manager: {name: a}\ntrainer:\n  precision: ";
  EXPECT_EQ(turned(nemo + "32\n", "precision.amp", "bf16"), nemo + "bf16-mixed\n");
  EXPECT_EQ(turned(nemo + "16\n", "precision.amp", "bf16"), nemo + "bf16-mixed\n");
  const std::string lightning = "trainer:\n  log_every_n_steps: 1\n  strategy: auto\n  precision: ";
  EXPECT_EQ(turned(lightning + "32\n", "precision.amp", "bf16"), lightning + "bf16\n") << "known since 1.6";
  EXPECT_EQ(turned(lightning + "32-true\n", "precision.amp", "fp16"), lightning + "16-mixed\n");
  const std::string opennmt = "src_vocab: a\ntgt_vocab: b\ntrain_steps: 9\nmodel_dtype: fp32\n";
  EXPECT_THAT(refusal(opennmt, "precision.amp", "bf16"), HasSubstr("takes only fp32, fp16"));
  EXPECT_THAT(turned(opennmt, "precision.amp", "fp16"), HasSubstr("model_dtype: fp16\n"));
  EXPECT_THAT(refusal("model:\n  _component_: x\ndtype: bf16\nbatch_size: 1\n", "precision.amp", "fp16"),
              HasSubstr("takes only fp32, bf16"));
}

TEST(SetKnob, LeavesWhatAFileAloneCannotSay) {
  const char* deepspeed = "{\"zero_optimization\": {\"stage\": 1}, \"fp16\": {\"enabled\": false}}";
  EXPECT_THAT(refusal(deepspeed, "precision.amp", "bf16", "ds.json"), HasSubstr("inputs"));
  const std::string trainer = "per_device_train_batch_size: 4\n";
  EXPECT_THAT(refusal(trainer + "bf16: false\ndeepspeed: ds.json\n", "precision.amp", "bf16"), HasSubstr("DeepSpeed"));
  EXPECT_EQ(turned(trainer + "bf16: false\ndeepspeed: null\n", "precision.amp", "bf16"),
            trainer + "bf16: true\ndeepspeed: null\n");
  EXPECT_EQ(turned(trainer + "torch_dtype: float32\n", "precision.amp", "bf16"),
            trainer + "torch_dtype: float32\nbf16: true\n")
      << "weights stay in 32 bits";
  EXPECT_THAT(refusal(trainer + "torch_dtype: bfloat16\nbf16: true\n", "precision.amp", "fp16"), HasSubstr("weights"));
  EXPECT_THAT(refusal("solver:\n  mixed_precision: \"no\"\nweight_dtype: \"fp16\"\nuncond_ratio: 0.1\nsnr_gamma: 5.0\n",
                      "precision.amp", "bf16"),
              HasSubstr("weight_dtype"));
  EXPECT_THAT(refusal("optimizer:\n  name: adamw\n  fused: false\n  foreach: true\n", "optimizer.fused", true),
              HasSubstr("foreach"));
  EXPECT_THAT(refusal("trainer:\n  strategy: ddp\n  log_every_n_steps: 5\n  gradient_clip_val: 1.0\n"
                      "optimizer:\n  fused: false\n",
                      "optimizer.fused", true),
              HasSubstr("clip"));
}

TEST(SetKnob, AValueThatValidationReadsStaysInHyperPyYaml) {
  const std::string text = "num_workers: 0\ntrain_dataloader_opts:\n  num_workers: !ref <num_workers>\n";
  EXPECT_EQ(turned(text, "loader.workers", 4),
            "num_workers: 4\ntrain_dataloader_opts:\n  num_workers: !ref <num_workers>\n");
  EXPECT_THAT(refusal(text + "valid_dataloader_opts:\n  num_workers: !ref <num_workers>\n", "loader.workers", 4),
              HasSubstr("valid_dataloader_opts.num_workers in line 5 takes its value from it"));
}

TEST(SetKnob, ALiteralTakesThePlaceOfAReferenceAndItsTag) {
  for (const char* tag : {"!ref", "!copy"}) {
    const std::string text = std::string("batch_size: 16\nopts:\n  num_workers: ") + tag + " ";
    EXPECT_EQ(turned(text + "<batch_size>  # why\n", "loader.workers", 3),
              "batch_size: 16\nopts:\n  num_workers: 3  # why\n");
  }
  EXPECT_EQ(turned("num_workers: !!int 16\n", "loader.workers", 3), "num_workers: !!int 3\n");
}

TEST(SetKnob, AddsAFlagOnlyWhereTheFrameworkReadsIt) {
  const std::string trainer = "per_device_train_batch_size: 4\n";
  EXPECT_EQ(turned(trainer + "bf16: true\n", "precision.amp", "fp16"), trainer + "bf16: false\nfp16: true\n");
  EXPECT_THAT(refusal(trainer + "use_bf16: true\n", "precision.amp", "fp16"), HasSubstr("has no key for fp16"));
  EXPECT_EQ(turned("auto_mix_prec: false\nnumber_of_epochs: 3\n__set_seed: 1\n", "precision.amp", "fp16"),
            "auto_mix_prec: true\nnumber_of_epochs: 3\n__set_seed: 1\n");
}

TEST(SetKnob, TellsWhereItGuesses) {
  const auto guessed = [](const char* text) {
    ConfigFile file = ConfigFile::from_text(text, "c.yaml");
    return set_knob(file, "precision.amp", "bf16").at(0).guessed;
  };
  EXPECT_TRUE(guessed("precision: fp32\n"));
  EXPECT_TRUE(guessed("precision: fp32  # fp32 or fp16\n")) << "bf16 is not among them";
  EXPECT_FALSE(guessed("precision: fp32  # bf16, fp16 or fp32\n"));
  EXPECT_FALSE(guessed("train:\n  use_amp: true\n  amp_dtype: float16\n")) << "types of torch for autocast";
  EXPECT_FALSE(guessed("mixed_precision: \"no\"\n")) << "a word of accelerate";
  EXPECT_FALSE(guessed("global_train_batch_size: 64\nmax_duration: 1ep\nprecision: fp32\n"));
  EXPECT_EQ(turned("precision: fp32  # fp32 or bf16-mixed\n", "precision.amp", "bf16"),
            "precision: bf16-mixed  # fp32 or bf16-mixed\n");
}

TEST(SetKnob, AReferenceMakesRoomForALiteralOfItsOwn) {
  EXPECT_EQ(turned("n: 2\ndata:\n  num_workers: ${n}\n", "loader.workers", 4), "n: 2\ndata:\n  num_workers: 4\n");
  EXPECT_EQ(turned("n: 2\nnum_workers: \"${n}\"  # c\n", "loader.workers", 4), "n: 2\nnum_workers: 4  # c\n");
  EXPECT_EQ(turned("a:\n  n: 2\n  num_workers: ${.n}\n", "loader.workers", 4), "a:\n  n: 2\n  num_workers: 4\n");
  EXPECT_EQ(turned("{\"w\": 2, \"train\": {\"num_workers\": \"@w\"}}", "loader.workers", 4, "bundle.json"),
            "{\"w\": 2, \"train\": {\"num_workers\": 4}}");
}

TEST(SetKnob, AnAliasMakesRoomForALiteralOfItsOwn) {
  EXPECT_EQ(turned("hidden: &w 2 # h\r\nnum_workers: *w # n\r\ndepth: *w\r\n", "loader.workers", 4),
            "hidden: &w 2 # h\r\nnum_workers: 4 # n\r\ndepth: *w\r\n");
  EXPECT_EQ(turned("x: &q \"no\"\nd: {mixed_precision: *q, y: *q}\n", "precision.amp", "bf16"),
            "x: &q \"no\"\nd: {mixed_precision: \"bf16\", y: *q}\n");
}

TEST(SetKnob, ALiteralOfThisKnobAloneIsEditedWhereItStands) {
  EXPECT_EQ(turned("num_workers: &w 2\ntrain:\n  num_workers: *w\n", "loader.workers", 4),
            "num_workers: &w 4\ntrain:\n  num_workers: *w\n");
  EXPECT_EQ(turned("num_workers: 2\ntrain:\n  num_workers: ${num_workers}\n", "loader.workers", 4),
            "num_workers: 4\ntrain:\n  num_workers: ${num_workers}\n");
  EXPECT_EQ(
      turned("base: &b\n  num_workers: 2\ntrain:\n  <<: *b\nval:\n  <<: *b\n  num_workers: 1\n", "loader.workers", 4),
      "base: &b\n  num_workers: 4\ntrain:\n  <<: *b\nval:\n  <<: *b\n  num_workers: 1\n");
}

TEST(SetKnob, AValueThatOtherKeysTakeIsLeftAlone) {
  const auto refused = [](const std::string& text, const std::string& reader, const std::string& name = "c.yaml") {
    EXPECT_THAT(refusal(text, "batch.size", 64, name), HasSubstr(reader + " in line")) << text;
    EXPECT_THAT(refusal(text, "batch.size", 64, name), HasSubstr("takes its value from it")) << text;
  };
  refused("batch_size: &b 32\nhidden: *b\n", "hidden");
  refused("train:\n  batch_size: &b 32\nval:\n  batch_size: *b\n", "val.batch_size");
  refused("batch_size: 32\nhidden: ${batch_size}\n", "hidden");
  refused("batch_size: 32\na: ${batch_size}\nsteps: ${a}\n", "a");
  refused("batch_size: 32\nname: run-${batch_size}-x\n", "name");
  refused("batch_size: 32\nlr: ${mul:${batch_size},0.1}\n", "lr");
  refused("batch_size: 32\nlr: ${oc.select:batch_size,1}\n", "lr");
  refused("train:\n  batch_size: 32\n  lr: ${.batch_size}\n", "train.lr");
  refused("train: {batch_size: 32}\nval: ${train}\n", "val.batch_size");
  refused("train: &t\n  batch_size: 32\nval: *t\n", "val.batch_size");
  refused("train: &t\n  batch_size: 32\nval:\n  <<: *t\n  x: 1\n", "val.batch_size");
  refused("{\"batch_size\": 32, \"hidden\": \"@batch_size\"}", "hidden", "bundle.json");
  refused("{\"train\": {\"batch_size\": 32}, \"lr\": \"$@train#batch_size * 2\"}", "lr", "bundle.json");
  refused("batch_size = 32\nscale = dict(base=batch_size * 8)\n", "scale.base", "c.py");
}

TEST(SetKnob, ALiteralOfOthersIsNotTakenForOurs) {
  EXPECT_EQ(turned("batch_size: 32\nmail: a@batch\nnote: costs 5%\nother: ${batch}\n", "batch.size", 64),
            "batch_size: 64\nmail: a@batch\nnote: costs 5%\nother: ${batch}\n");
  EXPECT_THROW(turned("num_workers: ${oc.env:N,4}\n", "loader.workers", 4), Error);
  EXPECT_THROW(turned("num_workers: ${num_workers}\n", "loader.workers", 4), Error);
}

TEST(SetKnob, LeavesValidationAndLookAlikesAlone) {
  EXPECT_EQ(turned("train:\n  num_workers: 0\nval:\n  num_workers: 1\n", "loader.workers", 4),
            "train:\n  num_workers: 4\nval:\n  num_workers: 1\n");
  EXPECT_THROW(turned("zero_optimization:\n  offload_param:\n    pin_memory: false\n", "loader.pin_memory", true),
               Error);
  EXPECT_THROW(turned("# num_workers: 0\nx: 1\n", "loader.workers", 4), Error);
  EXPECT_THROW(turned("stage1:\n  batch_size: 2\nstage2:\n  batch_size: 8\n", "batch.size", 4), Error);
  EXPECT_THROW(turned("num_workers: 1\n", "loader.workers", "many"), Error);
}

TEST(SetKnob, AddsKeysOnlyWhereTheyAreRead) {
  EXPECT_EQ(turned("per_device_train_batch_size: 4\nseed: 1\n", "loader.workers", 4),
            "per_device_train_batch_size: 4\nseed: 1\ndataloader_num_workers: 4\n");
  EXPECT_EQ(turned("train_dataloader = dict(\n    batch_size=2,\n    num_workers=2)\ntrain_cfg = dict(max_epochs=1)\n",
                   "loader.persistent_workers", true, "c.py"),
            "train_dataloader = dict(\n    batch_size=2,\n    num_workers=2,\n    persistent_workers=True)\n"
            "train_cfg = dict(max_epochs=1)\n");
  EXPECT_THROW(turned("batch_size: 4\n", "loader.workers", 4), Error);
  EXPECT_FALSE(can_set(ConfigFile::from_text("batch_size: 4\n", "c.yaml"), "loader.workers", 4));
  EXPECT_TRUE(can_set(ConfigFile::from_text("batch_size: 4\n", "c.yaml"), "batch.size", 8));
}

TEST(CommandLine, RecognisesFlagsOverridesAndVariables) {
  const auto found = recognize_command({"env", "OMP_NUM_THREADS=4", "python", "train.py", "--batch-size=8", "--workers",
                                        "2", "--amp", "trainer.precision=16", "+model.optimizer.lr=1e-3", "--out",
                                        "/tmp/num_workers=3/x", "--val-batch-size", "64"});
  Words knobs;
  for (const CommandSetting& setting : found) {
    knobs.push_back(pair_key(setting.knob, setting.means.value_or("?")));
  }
  EXPECT_THAT(knobs, ElementsAre("cpu.threads=4", "batch.size=8", "loader.workers=2", "precision.amp=?",
                                 "precision.amp=fp16", "optimizer.lr=0.001", "batch.size=64"));
  EXPECT_EQ(found.back().phase, Phase::kValidation);
}

TEST(CommandLine, WordsAfterTheEndOfOptionsAreNone) {
  EXPECT_TRUE(recognize_command({"python", "train.py", "--", "--batch-size", "8"}).empty());
  EXPECT_EQ(recognize_command({"torchrun", "--", "train.py", "--batch-size", "8"}).size(), 1U);
}

TEST(CommandLine, RewritesTheWordThatSaysIt) {
  EXPECT_EQ(apply_to_command({"python", "t.py", "--num-workers=0"}, "loader.workers", 4),
            (Words{"python", "t.py", "--num-workers=4"}));
  EXPECT_EQ(apply_to_command({"python", "t.py", "--workers", "0", "--lr", "1"}, "loader.workers", 4),
            (Words{"python", "t.py", "--workers", "4", "--lr", "1"}));
  EXPECT_EQ(apply_to_command({"python", "t.py", "data.num_workers=0"}, "loader.workers", 4),
            (Words{"python", "t.py", "data.num_workers=4"}));
  EXPECT_EQ(apply_to_command({"OMP_NUM_THREADS=64", "python", "t.py"}, "cpu.threads", 8),
            (Words{"OMP_NUM_THREADS=8", "python", "t.py"}));
  EXPECT_EQ(apply_to_command({"t", "--no-pin-memory", "--x"}, "loader.pin_memory", true), (Words{"t", "--x"}));
  EXPECT_EQ(apply_to_command({"t", "--fp16"}, "precision.amp", "off"), (Words{"t"}));
  EXPECT_EQ(apply_to_command({"t", "--mixed_precision", "no"}, "precision.amp", "bf16"),
            (Words{"t", "--mixed_precision", "bf16"}));
  EXPECT_EQ(apply_to_command({"t", "--val_num_workers", "1"}, "loader.workers", 4), std::nullopt);
  EXPECT_EQ(apply_to_command({"t"}, "loader.workers", 4), std::nullopt);
}

}  // namespace
}  // namespace unidle::knobs
