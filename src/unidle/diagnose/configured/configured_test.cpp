#include "unidle/diagnose/configured/configured.h"

#include <gmock/gmock.h>

#include "unidle/base/files.h"
#include "unidle/diagnose/configured/configured_files.h"

namespace unidle::diagnose {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Configured : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder() / name).parent_path());
    write_file_atomic(folder() / name, text);
  }
  std::vector<std::string> settings(const std::vector<std::string>& command) const {
    std::vector<std::string> out;
    for (const record::Setting& setting : configured_settings(command, folder())) {
      if (setting.source == "argument" || setting.source == "written") {
        continue;
      }
      out.push_back(setting.knob + "=" + setting.value + " " + setting.location + " " + setting.source);
    }
    return out;
  }
  const std::filesystem::path& folder() const { return temporary_.path(); }
  TemporaryFolder temporary_;
};

TEST_F(Configured, AFileThatTheScriptNames) {
  write("train.py", "cfg = load('experiment.yaml')['data']['loader']['workers']\n");
  write("experiment.yaml", "seed: 3\ndata:\n  loader:\n    workers: 2\n");
  write("other.yaml", "data:\n  loader:\n    workers: 9\n");
  EXPECT_THAT(settings({"python", "train.py"}), ElementsAre("loader.workers=2 experiment.yaml:4 configured"));
}

TEST_F(Configured, AFilesOwnWordsAreKept) {
  write("train.py", "cfg = load('a.yaml')['data']['num_workers']\nPIN_MEMORY = True\n");
  write("a.yaml", "data:\n  num_workers: 0x10\n");
  write("options.py", "parser.add_argument('--batch-size', type=int, default=64)\n");
  std::vector<std::string> written;
  for (const record::Setting& setting : configured_settings({"python", "train.py"}, folder())) {
    if (setting.source == "written") {
      written.push_back(setting.knob + " is " + setting.value + " in " + setting.location);
    }
  }
  EXPECT_THAT(written, ElementsAre("loader.pin_memory is PIN_MEMORY: True in train.py:2",
                                   "loader.workers is num_workers: 0x10 in a.yaml:2"));
}

TEST_F(Configured, AKeyThatNoScriptNames) {
  write("train.py", "cfg = load('a.yaml')\nloader(cfg['num_workers'], cfg['pin_memory'])\n");
  write("a.yaml", "data:\n  loader:\n    workers: 2\npin_memory: true\n");
  EXPECT_THAT(settings({"python", "train.py"}),
              ElementsAre("loader.pin_memory=true a.yaml:4 configured", "loader.workers=2 a.yaml:3 configured",
                          "loader.workers=2 data.loader.workers unnamed"));
  write("train.py", "cfg = load('a.yaml')\nloader(**cfg['loader'])\n");
  EXPECT_THAT(settings({"python", "train.py"}), Not(Contains(HasSubstr("unnamed"))));
}

TEST_F(Configured, AScriptOfManyModules) {
  std::string script = "cfg = load('a.yaml')\n";
  for (int i = 0; i < 20; ++i) {
    script += "import part" + std::to_string(i) + "\n";
    write("part" + std::to_string(i) + ".py", "");
  }
  write("train.py", script);
  EXPECT_EQ(configured_files({"python", "train.py"}, folder()).scripts.size(), 21U);
}

TEST_F(Configured, BlanksWithoutEndAreReadOnce) {
  write("options.py", "NUM_WORKERS = 4\n");
  write("train.py", std::string(500'000, ' ') + "\n from\t" + std::string(400'000, ' ') + "options import x\n");
  EXPECT_THAT(settings({"python", "train.py"}), ElementsAre("loader.workers=4 options.py:1 configured"));
}

TEST_F(Configured, OnlyImportsNameModules) {
  write("options.py", "NUM_WORKERS = 4\n");
  for (const char* other :
       {"# import options", "imported options", "importoptions", "from .. import y", "import 3options"}) {
    write("train.py", std::string(other) + "\n");
    EXPECT_THAT(settings({"python", "train.py"}), IsEmpty()) << other;
  }
  for (const char* own :
       {"import options", "  from .options import x", "import\toptions as o", "from options import x"}) {
    write("train.py", std::string("x = 1\n") + own);
    EXPECT_THAT(settings({"python", "train.py"}), Not(IsEmpty())) << own;
  }
}

TEST_F(Configured, AFileOnTheCommandLine) {
  write("a/b.yaml", "num_workers: 4\n");
  EXPECT_THAT(settings({"python", "train.py", "--config=a/b.yaml"}),
              ElementsAre("loader.workers=4 a/b.yaml:1 configured"));
  EXPECT_THAT(settings({"python", "train.py", "--config", "a/b.yaml"}),
              ElementsAre("loader.workers=4 a/b.yaml:1 configured"));
}

TEST_F(Configured, ASwitchForMixedPrecisionIsOnInWhateverFormat) {
  write("train.py", "amp, use_amp, amp_dtype = load('a.yaml')\n");
  for (const char* file : {"amp: true\n", "use_amp: yes\n"}) {
    write("a.yaml", file);
    EXPECT_THAT(settings({"python", "train.py"}), ElementsAre("precision.amp=true a.yaml:1 configured")) << file;
  }
  write("a.yaml", "use_amp: true\namp_dtype: float16\n");
  EXPECT_THAT(settings({"python", "train.py"}), ElementsAre("precision.amp=fp16 a.yaml:2 configured"));
  write("a.yaml", "amp_dtype: float16\n");
  EXPECT_THAT(settings({"python", "train.py"}), IsEmpty()) << "a format for when it is on";
  write("a.yaml", "amp: auto\n");
  EXPECT_THAT(settings({"python", "train.py"}), IsEmpty());
  EXPECT_THAT(settings({"python", "train.py", "--amp"}), ElementsAre("precision.amp=true --amp configured"));
}

TEST_F(Configured, WhatFilesContradictIsLeftOut) {
  write("a.yaml", "num_workers: 4\npin_memory: true\n");
  write("b.yaml", "num_workers: 8\n");
  EXPECT_THAT(settings({"./train", "a.yaml", "b.yaml"}), ElementsAre("loader.pin_memory=true a.yaml:2 configured"));
}

TEST_F(Configured, ConstantsAndDefaultsOfTheScript) {
  write("train.py", "import options\nNUM_WORKERS = 4\n");
  write("options.py", "parser.add_argument('--batch-size', type=int, default=64)\n");
  write("unused.py", "PIN_MEMORY = True\n");
  EXPECT_THAT(settings({"python", "train.py"}),
              ElementsAre("batch.size=64 options.py:1 configured", "loader.workers=4 train.py:2 configured"));
}

TEST_F(Configured, TheCommandLineGoesBeforeFilesAndTheseBeforeTheScript) {
  write("train.py", "cfg = load('a.yaml')['num_workers']\nNUM_WORKERS = 4\nPIN_MEMORY = True\n");
  write("a.yaml", "num_workers: 2\nbatch_size: 8\n");
  EXPECT_THAT(settings({"python", "train.py", "--batch-size", "32"}),
              ElementsAre("batch.size=32 --batch-size configured", "loader.pin_memory=true train.py:3 configured",
                          "loader.workers=2 a.yaml:1 configured"));
}

TEST_F(Configured, WhatTheScriptsAssignToIsLeftOut) {
  const std::string option = "p.add_argument('--batch-size', default=256, type=int)\n";
  for (const char* line : {"args.batch_size = int(args.batch_size / n)\n", "args.batch_size //= n\n",
                           "cfg['batch_size'] = 8\n", "opt.batch_size=opt.batch_size*2\n"}) {
    write("train.py", option + line);
    EXPECT_THAT(settings({"python", "train.py"}), IsEmpty()) << line;
    EXPECT_THAT(settings({"python", "train.py", "--batch-size", "64"}), IsEmpty()) << line;
  }
  for (const char* line : {"self.batch_size = batch_size\n", "cfg.batch_size = args.batch_size  # copy\n",
                           "if args.batch_size == 3: pass\n", "cfg['batch_size'] = args['batch_size']\n",
                           "args.batch_size_old = 3\n", "x = args.batch_size\n"}) {
    write("train.py", option + line);
    EXPECT_THAT(settings({"python", "train.py"}), ElementsAre("batch.size=256 train.py:1 configured")) << line;
  }
}

TEST_F(Configured, TwoOptionsForOneKnobSayNothing) {
  write("train.py", "");
  EXPECT_THAT(settings({"python", "train.py", "--batch-size", "64", "--micro-batch-size", "4"}), IsEmpty());
  EXPECT_THAT(settings({"python", "train.py", "--batch-size", "64", "--batch-size", "4"}),
              ElementsAre("batch.size=4 --batch-size configured"));
}

TEST_F(Configured, AGroupOfHydraSpeaksAgainstTheFile) {
  write("train.py", "@hydra.main(config_path='conf', config_name='config.yaml')\n");
  write("conf/config.yaml", "batch_size: 128\n");
  write("conf/experiment/fast.yaml", "batch_size: 16\n");
  EXPECT_THAT(settings({"python", "train.py"}), Contains(HasSubstr("batch.size=128")));
  EXPECT_THAT(settings({"python", "train.py", "+experiment=fast"}), Not(Contains(HasSubstr("batch.size"))));
  EXPECT_THAT(settings({"python", "train.py", "+experiment=fast", "batch_size=32"}),
              Contains("batch.size=32 batch_size configured"));
}

TEST_F(Configured, ArgumentsThatTheProgramParsesAreNamed) {
  write("train.py",
        "p.add_argument('-b', '--batch-size', default=256)\nload('a.yaml')['pin_memory']\nNUM_WORKERS = 3\n");
  write("a.yaml", "data:\n  pin_memory: true\n");
  std::vector<std::string> named;
  for (const record::Setting& setting : configured_settings({"python", "train.py", "--use-amp"}, folder())) {
    if (setting.source == "argument") {
      named.push_back(setting.knob + " " + setting.value + " " + setting.location);
    }
  }
  EXPECT_THAT(named, ElementsAre("batch.size default batch_size", "loader.pin_memory file pin_memory",
                                 "loader.workers file num_workers", "precision.amp word use_amp"));
}

TEST_F(Configured, AModuleThatIsRunByItsName) {
  write("pkg/train.py", "NUM_WORKERS = 4\n");
  EXPECT_THAT(settings({"python", "-m", "pkg.train"}), ElementsAre("loader.workers=4 pkg/train.py:1 configured"));
}

TEST_F(Configured, WhatTheCommandSaysUnclearlyIsNotTakenFromElsewhere) {
  write("train.py", "NUM_WORKERS = 4\n");
  EXPECT_THAT(settings({"python", "train.py", "--num-workers", "auto"}), IsEmpty());
}

TEST_F(Configured, VariablesThatReadLikeSettings) {
  const auto found =
      environment_settings({"PATH=/bin", "BATCH_SIZE=16", "OMP_NUM_THREADS=1", "NUM_WORKERS=many", "EDITOR", ""});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].knob + found[0].value + found[0].location, "batch.size16BATCH_SIZE");
  EXPECT_EQ(found[1].knob + found[1].value + found[1].source, "cpu.threads1environment");
}

TEST_F(Configured, WhatIsOverruledOnPurposeIsNotRecorded) {
  write("train.py", "NUM_WORKERS = 4\n");
  const std::vector<std::string> environment = {"BATCH_SIZE=16", "OMP_NUM_THREADS=1"};
  std::vector<std::string> told;
  const knobs::Settings overruled = {{"loader.workers", 8}, {"batch.size", 32}};
  for (const record::Setting& setting :
       configured_run_settings({"python", "train.py"}, folder(), environment, overruled)) {
    told.push_back(setting.knob);
  }
  EXPECT_THAT(told, ElementsAre("cpu.threads"));
  EXPECT_EQ(configured_run_settings({"python", "train.py"}, folder(), environment, {}).size(), 5U);
}

TEST_F(Configured, WhatCannotBeReadIsLeftOut) {
  write("a.yaml", "a: [1,\n b: }\n");
  EXPECT_THAT(settings({"./train", "a.yaml", "nothing.yaml"}), IsEmpty());
  EXPECT_THAT(settings({}), IsEmpty());
  EXPECT_THAT(configured_settings({"./train"}, "/nowhere/at/all"), IsEmpty());
}

TEST_F(Configured, TheDeviceThatIsAskedFor) {
  write("train.py", "parser.add_argument('--device', default='cpu')\n");
  write("gpu.yaml", "model:\n  device: cuda:1\n");
  write("auto.yaml", "device: auto\naccelerator: tpu\n");
  write("parts.yaml", "ema: {device: cpu}\nzero_optimization:\n  offload_optimizer:\n    device: cpu\n");
  write("nested.yaml", "ema: {device: cpu}\nconfig:\n  trainer:\n    accelerator: gpu\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, ""},  // a default is not a request
      {{"--device", "cpu"}, "device=cpu --device configured"},
      {{"--device=cuda:1"}, "device=cuda --device configured"},
      {{"--device", "auto"}, ""},
      {{"trainer.accelerator=gpu"}, "device=cuda trainer.accelerator configured"},
      {{"--no-cuda"}, "device=cpu --no-cuda configured"},
      {{"--no-cuda", "--device", "cuda"}, ""},
      {{"--no_cuda", "False"}, ""},
      {{"--use_cpu", "True"}, "device=cpu --use_cpu configured"},
      {{"--cpu", "8"}, ""},  // a number of CPUs
      {{"--cpu", "data"}, "device=cpu --cpu configured"},
      {{"gpu.yaml"}, "device=cuda gpu.yaml:2 configured"},
      {{"gpu.yaml", "--device", "cpu"}, "device=cpu --device configured"},
      {{"auto.yaml"}, ""},
      {{"parts.yaml"}, ""},  // devices of other things
      {{"teacher.device=cpu"}, ""},
      {{"--teacher.device", "cpu"}, ""},
      {{"+trainer.accelerator=cpu"}, "device=cpu +trainer.accelerator configured"},
      {{"nested.yaml"}, "device=cuda nested.yaml:4 configured"},
  };
  for (const auto& [words, expected] : cases) {
    std::vector<std::string> command = {"python", "train.py"};
    command.insert(command.end(), words.begin(), words.end());
    EXPECT_EQ(settings(command), expected.empty() ? std::vector<std::string>{} : std::vector{expected});
  }
}

TEST_F(Configured, VariablesThatHideEveryGpu) {
  for (const auto& [entry, hides] : std::vector<std::pair<std::string, bool>>{{"CUDA_VISIBLE_DEVICES=", true},
                                                                              {"CUDA_VISIBLE_DEVICES=-1", true},
                                                                              {"HIP_VISIBLE_DEVICES=-1", true},
                                                                              {"CUDA_VISIBLE_DEVICES=-1,0", true},
                                                                              {"CUDA_VISIBLE_DEVICES=0", false},
                                                                              {"CUDA_VISIBLE_DEVICES=MIG-1", false},
                                                                              {"CUDA_VISIBLE_DEVICES", false},
                                                                              {"MY_VISIBLE_DEVICES=", false}}) {
    const std::vector<record::Setting> found = environment_settings({"HOME=/", entry});
    EXPECT_EQ(found.size(), hides ? 1U : 0U) << entry;
    if (hides && !found.empty()) {
      EXPECT_EQ(found[0].knob + found[0].value + found[0].source, "devicecpuenvironment");
    }
  }
}

}  // namespace
}  // namespace unidle::diagnose
