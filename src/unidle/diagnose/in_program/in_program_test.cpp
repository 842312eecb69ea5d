#include "unidle/diagnose/in_program/in_program.h"

#include <gmock/gmock.h>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A run whose loader, made in line 3 of train.py, has no workers: two are proposed.
class InProgram : public ::testing::Test {
 protected:
  InProgram() {
    signals.folder = folder.path();
    signals.loader.emplace();
    signals.loader->where = "train.py:3";
    signals.loader->made_with = "torch";
    configured("", "");
    signals.command = {"python", "train.py"};
  }

  /// No workers are in effect; a file says `value`, or nothing.
  void configured(const std::string& value, const std::string& at) {
    account::KnobReading reading;
    if (!value.empty()) {
      reading.configured = value;
    }
    reading.configured_at = at;
    reading.effective = "0";
    signals.settings["loader.workers"] = reading;
  }
  void write(const std::string& file, const std::string& text) { write_file_atomic(folder.path() / file, text); }
  void write_call(const std::string& call) { write("train.py", "import torch\n\nloader = " + call + "\n"); }
  Diagnosis diagnosed() const {
    Diagnosis diagnosis = diagnose(signals);
    put_in_program(signals, {}, diagnosis);
    return diagnosis;
  }
  std::optional<knobs::InProgram> workers() const {
    const Diagnosis diagnosis = diagnosed();
    for (const knobs::Change& fix : diagnosis.findings.at(0).fixes) {
      if (fix.knob == "loader.workers") {
        return fix.in_program;
      }
    }
    ADD_FAILURE() << "no workers are proposed";
    return {};
  }

  TemporaryFolder folder;
  Signals signals = waiting_cpu(0.62);
};

TEST_F(InProgram, TheArgumentOfTheCall) {
  write_call("DataLoader(data, 4)");
  const auto words = workers();
  ASSERT_TRUE(words);
  EXPECT_EQ(words->words, "num_workers=2");
  EXPECT_EQ(words->call, "DataLoader");
  EXPECT_EQ(words->where, "train.py:3");
  EXPECT_THAT(words->before, ElementsAre("loader = DataLoader(data, 4)"));
  EXPECT_THAT(words->after, ElementsAre("loader = DataLoader(data, 4, num_workers=2)"));
  const std::string text = to_text(diagnosed(), 400, false);
  EXPECT_THAT(text, HasSubstr("set num_workers=2 in DataLoader(...) (train.py:3), at best"));
  EXPECT_THAT(text, HasSubstr("   => num_workers=2 in DataLoader(...), train.py:3 [loader.workers, exact]: "));
  EXPECT_THAT(text, HasSubstr("\n      - loader = DataLoader(data, 4)\n"
                              "      + loader = DataLoader(data, 4, num_workers=2)\n"));
  const auto json = to_json(diagnosed())["findings"][0]["fixes"][0]["in_program"];
  EXPECT_EQ(json["words"], "num_workers=2");
  EXPECT_EQ(json["call"], "DataLoader");
  EXPECT_EQ(json["where"], "train.py:3");
  EXPECT_THAT(json["before"], ElementsAre("loader = DataLoader(data, 4)"));
  EXPECT_THAT(json["after"], ElementsAre("loader = DataLoader(data, 4, num_workers=2)"));
  EXPECT_EQ(json.size(), 5U);
}

TEST_F(InProgram, TheLineOfALongCallThatChanges) {
  write_call("DataLoader(\n    data,\n    shuffle=True,\n)");
  EXPECT_EQ(workers()->where, "train.py:5");
  EXPECT_THAT(workers()->after, ElementsAre("    shuffle=True, num_workers=2,"));
  EXPECT_THAT(to_text(diagnosed(), 80, false), HasSubstr("\n      - shuffle=True,\n")) << "moved left";
}

TEST_F(InProgram, NothingWhereTheSourceIsAnotherByNow) {
  EXPECT_FALSE(workers()) << "it is gone";
  write_call("make_loader(data)");
  EXPECT_FALSE(workers());
  write("train.py", "loader = DataLoader(data)\n");
  EXPECT_FALSE(workers()) << "it moved";
  write_call("DataLoader(data, **options)");
  EXPECT_FALSE(workers());
  write_call("DataLoader(data");
  EXPECT_FALSE(workers());
  EXPECT_THAT(to_text(diagnosed(), 400, false), HasSubstr("=> loader.workers: 0 -> 2 (exact)"));
}

TEST_F(InProgram, TheProgramsOwnOption) {
  write_call("DataLoader(data, 4, num_workers=args.workers)");
  signals.command = {"python", "train.py", "--workers", "0", "--name", "a b"};
  ASSERT_TRUE(workers());
  EXPECT_EQ(workers()->words, "--workers 2");
  EXPECT_EQ(workers()->command, "python train.py --workers 2 --name 'a b'");
  EXPECT_THAT(workers()->after, IsEmpty());
  EXPECT_THAT(to_text(diagnosed(), 400, false),
              AllOf(HasSubstr("=> --workers 2 on the command line [loader.workers: 0 -> 2, exact]: "),
                    HasSubstr("   try: python train.py --workers 2 --name 'a b'\n")));
  signals.command = {"python", "train.py"};
  signals.omitted = {{"loader.workers", {"--workers", "0"}}};
  EXPECT_EQ(workers()->words, "--workers 2");
  EXPECT_EQ(workers()->command, "python train.py --workers 2");
}

TEST_F(InProgram, AnOptionThatTheCallDoesNotUseIsNone) {
  signals.omitted = {{"loader.workers", {"--workers", "0"}}};
  write_call("DataLoader(data, 4)");
  EXPECT_EQ(workers()->words, "num_workers=2");
  write_call("make_loader(data, args)");
  EXPECT_EQ(workers()->words, "--workers 2") << "the function may";
}

TEST_F(InProgram, TheKeyOfAFile) {
  write_call("DataLoader(data, 4, num_workers=config.workers)");
  write("a.yaml", "batch_size: 4\nworkers: 0  # why\n");
  configured("0", "a.yaml:2");
  ASSERT_TRUE(workers());
  EXPECT_EQ(workers()->words, "workers: 2");
  EXPECT_EQ(workers()->where, "a.yaml:2");
  EXPECT_THAT(workers()->after, ElementsAre("workers: 2  # why"));
  write("a.yaml", "batch_size: 4\nworkers: 1\n");
  EXPECT_EQ(workers()->words, "num_workers=2") << "the file says something else by now";
  signals.settings["loader.workers"].configured = "1";
  EXPECT_EQ(workers()->words, "num_workers=2") << "it is not in effect";
}

TEST_F(InProgram, AConstantOfTheScript) {
  write("train.py", "WORKERS = 0\n\nloader = DataLoader(data, num_workers=WORKERS)\n");
  configured("0", "train.py:1");
  EXPECT_EQ(workers()->words, "WORKERS = 2");
  EXPECT_THAT(workers()->after, ElementsAre("WORKERS = 2"));
}

TEST_F(InProgram, AnOptionWithoutAValue) {
  Diagnosis diagnosis;
  diagnosis.findings.resize(1);
  diagnosis.findings[0].fixes = {knobs::change_of("precision.amp", "off", "bf16", "")};
  signals.switches = {{"precision.amp", {{"fp16", "--fp16"}, {"bf16", "--bf16"}}}};
  put_in_program(signals, {}, diagnosis);
  ASSERT_TRUE(diagnosis.findings[0].fixes[0].in_program);
  EXPECT_EQ(diagnosis.findings[0].fixes[0].in_program->command, "python train.py --bf16");
}

TEST_F(InProgram, CodeAroundTheCallOfTheModel) {
  write("train.py", "import torch\n\nout = model(x)\n");
  signals.model_where = "train.py:3";
  signals.device_kind = "cuda";
  signals.started_wall_ns = system_clock().wall_ns() + kNsPerSecond;
  Diagnosis diagnosis;
  diagnosis.findings.resize(1);
  diagnosis.findings[0].fixes = {knobs::change_of("precision.amp", "off", "bf16", "run it under autocast")};
  put_in_program(signals, {}, diagnosis);
  EXPECT_THAT(to_text(diagnosis, 400, false),
              HasSubstr("=> with torch.autocast(\"cuda\", dtype=torch.bfloat16): around the forward pass, train.py:3 "
                        "[precision.amp: off -> bf16, numeric]: run it under autocast\n      | out = model(x)\n"));
  signals.called = {{"train.py:3", "lightning.Trainer.fit"}};
  put_in_program(signals, {}, diagnosis);
  EXPECT_FALSE(diagnosis.findings[0].fixes[0].in_program) << "the call of the model is in a package";
}

TEST_F(InProgram, TheLineOfAFindingWithoutAKnob) {
  write("train.py", "import torch\n\n  total += loss.item()\n");
  Diagnosis diagnosis;
  diagnosis.findings.resize(1);
  diagnosis.findings[0].where = "train.py:3";
  const auto lines = [&] {
    put_in_program(signals, {}, diagnosis);
    return diagnosis.findings[0].lines;
  };
  EXPECT_THAT(lines(), IsEmpty()) << "unknown when the run was";
  signals.started_wall_ns = system_clock().wall_ns() + kNsPerSecond;
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_EQ(lines()[0].text, "total += loss.item()");
  EXPECT_THAT(to_text(diagnosis, 60, false), HasSubstr("\n      | total += loss.item()\n"));
  EXPECT_EQ(to_json(diagnosis)["findings"][0]["lines"][0]["text"], "total += loss.item()");
  signals.started_wall_ns = system_clock().wall_ns() - 10 * kNsPerSecond;
  EXPECT_THAT(lines(), IsEmpty()) << "written after the run began";
}

TEST_F(InProgram, VariablesStandBeforeTheCommand) {
  signals.command = {"python", "train.py"};
  Diagnosis diagnosis;
  diagnosis.findings.resize(1);
  diagnosis.findings[0].id = "freed-memory-returned";
  diagnosis.findings[0].fixes = {knobs::change_of("memory.keep_freed", false, true, "keep it")};
  put_in_program(signals, {}, diagnosis);
  ASSERT_TRUE(diagnosis.findings[0].fixes.front().in_program);
  EXPECT_EQ(in_words(*diagnosis.findings[0].fixes.front().in_program, Language::kEnglish),
            "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1 on the command line");
  EXPECT_EQ(diagnosis.findings[0].fixes.front().in_program->command,
            "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1 python train.py");
  signals.command.clear();
  put_in_program(signals, {}, diagnosis);
  EXPECT_FALSE(diagnosis.findings[0].fixes.front().in_program);
}

TEST_F(InProgram, TheAdviceIsThatForTheLine) {
  write("train.py", "def log(row):\n  os.fsync(file)\n");
  signals.started_wall_ns = system_clock().wall_ns() + kNsPerSecond;
  Diagnosis diagnosis;
  diagnosis.findings.resize(2);
  diagnosis.findings[0].id = "python-between-steps";
  diagnosis.findings[1].id = "steps-slow-down";
  diagnosis.findings[0].where = diagnosis.findings[1].where = "train.py:2";
  put_in_program(signals, {}, diagnosis);
  EXPECT_THAT(diagnosis.findings[0].proposes, HasSubstr("let the operating system write"));
  EXPECT_EQ(diagnosis.findings[1].proposes, "");
}

TEST_F(InProgram, TheLineThatCostsMostOfASampleSaysHowItCostsLess) {
  write("train.py", "import pandas\n\nloader = DataLoader(data, 4)\nrow = table.iloc[index]\n");
  signals.started_wall_ns = system_clock().wall_ns() + kNsPerSecond;
  signals.hot = {{"train", "input", "train.py:4", "Rows.__getitem__", 60, 66}};
  const Diagnosis diagnosis = diagnosed();
  ASSERT_TRUE(diagnosis.findings.at(0).cheaper) << "beside the workers";
  EXPECT_EQ(diagnosis.findings[0].cheaper->text, "row = table.iloc[index]");
  EXPECT_THAT(to_text(diagnosis, 400, false),
              HasSubstr("   => or make samples cheaper at train.py:4: turn the table into arrays"));
  EXPECT_EQ(to_json(diagnosis)["findings"][0]["cheaper_samples"]["where"], "train.py:4");
  for (std::size_t i = 1; i < diagnosis.findings.size(); ++i) {
    EXPECT_FALSE(diagnosis.findings[i].cheaper) << "said once";
  }
  signals.hot.front().hits = 10;
  EXPECT_FALSE(diagnosed().findings.at(0).cheaper) << "too few looks";
}

TEST_F(InProgram, TheNamedLineSaysHowSamplesCostLessWhereTheHottestDoesNot) {
  write("train.py", "def collate(batch):\n  return tokenizer(batch)\n\nmerged = pairs[first]\n");
  signals.started_wall_ns = system_clock().wall_ns() + kNsPerSecond;
  signals.hot = {{"train", "input", "train.py:4", "Tokenizer.merge", 60, 66}};
  Diagnosis diagnosis;
  diagnosis.findings.resize(1);
  diagnosis.findings[0].id = "loader-no-workers";
  diagnosis.findings[0].where = "train.py:2";
  put_in_program(signals, {}, diagnosis);
  EXPECT_THAT(diagnosis.findings[0].proposes, HasSubstr("turn the texts into numbers once"));
  diagnosis.findings[0].fixes = {knobs::change_of("loader.workers", 0, {}, "make the collate function cheaper")};
  put_in_program(signals, {}, diagnosis);
  EXPECT_THAT(diagnosis.findings[0].fixes.front().reason, HasSubstr("turn the texts into numbers once"));
  diagnosis.findings[0].fixes.clear();
  diagnosis.findings[0].where = "train.py:1";
  diagnosis.findings[0].proposes = "make the collate function cheaper";
  put_in_program(signals, {}, diagnosis);
  EXPECT_EQ(diagnosis.findings[0].proposes, "make the collate function cheaper");
}

TEST_F(InProgram, WhereFewPassesAreMadeCheaperSamplesGainMoreThanKeptOnes) {
  write("train.py", "import pandas\n\nloader = DataLoader(data, 4)\nrow = table.iloc[index]\n");
  signals.started_wall_ns = system_clock().wall_ns() + kNsPerSecond;
  signals.hot = {{"train", "input", "train.py:4", "Rows.__getitem__", 60, 66}};
  const auto first = [&](double epochs) {
    signals.epochs = epochs;
    Diagnosis diagnosis;
    diagnosis.findings.resize(1);
    Finding& finding = diagnosis.findings[0];
    finding.id = "dataset-slow-sample";
    finding.share = 0.5;
    finding.speedup_bound = 1.2;
    finding.fixes = {knobs::change_of("cache.features", {}, "memory", "keep them")};
    put_in_program(signals, {}, diagnosis);
    return finding;
  };
  const Finding few = first(2);
  ASSERT_EQ(few.fixes.size(), 2U);
  EXPECT_TRUE(few.fixes.front().in_code);
  EXPECT_FALSE(few.fixes.front().to);
  EXPECT_THAT(few.fixes.front().reason, HasSubstr("turn the table into arrays"));
  EXPECT_EQ(few.fixes.back().to, "memory");
  EXPECT_EQ(few.speedup_bound, 2) << "of samples that cost nothing";
  EXPECT_FALSE(few.cheaper) << "said once";
  const Finding many = first(10);
  EXPECT_EQ(many.fixes.size(), 1U);
  EXPECT_EQ(many.speedup_bound, 1.2);
  EXPECT_TRUE(many.cheaper);
}

TEST_F(InProgram, APackagesFunctionThatCostsMostOfASampleIsNamed) {
  write_call("DataLoader(data, 4)");
  signals.hot = {{"train", "input", "", "torchvision.datasets.folder.pil_loader", 60, 66}};
  const auto cheaper = diagnosed().findings.at(0).cheaper;
  ASSERT_TRUE(cheaper);
  EXPECT_EQ(cheaper->place, "torchvision.datasets.folder.pil_loader");
}

TEST_F(InProgram, OnlyWhatCheaperSamplesCureIsToldOfThem) {
  write("train.py", "import pandas\n\nloader = DataLoader(data, 4)\nrow = table.iloc[index]\n");
  signals.started_wall_ns = system_clock().wall_ns() + kNsPerSecond;
  signals.hot = {{"train", "input", "train.py:4", "Rows.__getitem__", 60, 66}};
  Diagnosis diagnosis;
  diagnosis.findings.resize(2);
  diagnosis.findings[0].id = "run-failed";
  diagnosis.findings[1].id = "dataset-slow-sample";
  diagnosis.findings[0].where = diagnosis.findings[1].where = "train.py:4";
  put_in_program(signals, {}, diagnosis);
  EXPECT_EQ(diagnosis.findings[0].proposes, "") << "the line failed";
  EXPECT_THAT(diagnosis.findings[1].proposes, HasSubstr("turn the table into arrays")) << "it has no fix";
  EXPECT_FALSE(diagnosis.findings[1].cheaper);
}

TEST_F(InProgram, NothingIsSaidOfASampleWhoseLineIsOfNoKnownKind) {
  write("train.py", "import torch\n\nloader = DataLoader(data, 4)\nvalue = compute(index)\n");
  signals.started_wall_ns = system_clock().wall_ns() + kNsPerSecond;
  signals.hot = {{"train", "input", "train.py:4", "TokenizedDataset.__getitem__", 60, 66}};
  EXPECT_FALSE(diagnosed().findings.at(0).cheaper);
}

TEST_F(InProgram, TheCallThatSetsTheThreads) {
  write("train.py", "import torch\n\ntorch.set_num_threads(1)\n");
  account::KnobReading reading;
  reading.effective = "1";
  reading.effective_at = "train.py:3";
  signals.settings["cpu.threads"] = reading;
  Diagnosis diagnosis;
  diagnosis.findings.resize(1);
  diagnosis.findings[0].fixes = {knobs::change_of("cpu.threads", 1, 4, "")};
  put_in_program(signals, {}, diagnosis);
  ASSERT_TRUE(diagnosis.findings[0].fixes[0].in_program);
  EXPECT_THAT(diagnosis.findings[0].fixes[0].in_program->after, ElementsAre("torch.set_num_threads(4)"));
}

TEST_F(InProgram, TheBackwardPassIsNamedByItsLine) {
  write("train.py", "loss = model(x)\nloss.backward()\n");
  signals.started_wall_ns = system_clock().wall_ns() + kNsPerSecond;
  Diagnosis diagnosis;
  diagnosis.step = StepShares{.compute = 0.98};
  diagnosis.compute_in = {{0.7, "train (train.py:2)", "train.py:2", 0.58}, {0.3, "train.py:1", "train.py:1", 0.3}};
  put_in_program(signals, {}, diagnosis);
  EXPECT_THAT(to_text(diagnosis, 200, false),
              HasSubstr("Compute, by stack samples: 58 % in the backward pass (train.py:2), 30 % in train.py:1.\n"));
}

TEST_F(InProgram, ACallThatTrainsIsNoPlace) {
  write("train.py", "trainer = Trainer(model)\ntrainer.train()\n");
  signals.started_wall_ns = system_clock().wall_ns() + kNsPerSecond;
  Diagnosis diagnosis;
  diagnosis.step = StepShares{.compute = 0.98};
  diagnosis.compute_in = {{1, "train.py:2", "train.py:2", 1}};
  diagnosis.findings.resize(2);
  diagnosis.findings[0].id = "padding-waste";
  diagnosis.findings[1].id = "checkpoint-dominates";
  diagnosis.findings[0].where = diagnosis.findings[1].where = "train.py:2";
  put_in_program(signals, {}, diagnosis);
  EXPECT_THAT(to_text(diagnosis, 200, false), Not(HasSubstr("by stack samples")));
  EXPECT_EQ(diagnosis.findings[0].where, std::nullopt);
  EXPECT_EQ(diagnosis.findings[1].where, "train.py:2") << "what the library does there is told beside it";
}

TEST_F(InProgram, AnIgnoredSettingIsMendedWhereItIsRead) {
  write_call("DataLoader(data, 4, num_workers=config.get('workers', 0))");
  configured("2", "a.yaml:2");
  ASSERT_TRUE(workers());
  EXPECT_THAT(workers()->before, ElementsAre("loader = DataLoader(data, 4, num_workers=config.get('workers', 0))"));
  EXPECT_THAT(workers()->after, IsEmpty());
}

TEST_F(InProgram, OneCommandChangesBothOptionsOfTheBatch) {
  signals.loader.reset();
  signals.command = {"python", "train.py", "--per_device_train_batch_size", "4", "--gradient_accumulation_steps", "8"};
  Diagnosis diagnosis;
  diagnosis.findings.resize(1);
  auto& fixes = diagnosis.findings[0].fixes;
  fixes = {knobs::change_of("batch.size", 4, 32, ""), knobs::change_of("batch.accumulation", 8, 1, "")};
  put_in_program(signals, {}, diagnosis);
  ASSERT_TRUE(fixes[0].in_program && fixes[1].in_program);
  EXPECT_EQ(fixes[0].in_program->words, "--per_device_train_batch_size 32");
  EXPECT_EQ(fixes[0].in_program->command, "");
  EXPECT_EQ(fixes[1].in_program->command,
            "python train.py --per_device_train_batch_size 32 --gradient_accumulation_steps 1");
}

TEST_F(InProgram, ABatchChangesWholeOrNotAtAll) {
  write_call("DataLoader(data, 8)");
  Diagnosis diagnosis;
  diagnosis.findings.resize(1);
  signals.loader->batch_size = 8;
  auto& fixes = diagnosis.findings[0].fixes;
  fixes = {knobs::change_of("batch.size", 8, 16, ""), knobs::change_of("batch.accumulation", 4, 2, "")};
  put_in_program(signals, {}, diagnosis);
  EXPECT_FALSE(fixes[0].in_program);
  fixes.pop_back();
  put_in_program(signals, {}, diagnosis);
  ASSERT_TRUE(fixes[0].in_program);
  EXPECT_THAT(fixes[0].in_program->after, ElementsAre("loader = DataLoader(data, 16)"));
  signals.loader->batch_size = 32;
  put_in_program(signals, {}, diagnosis);
  EXPECT_FALSE(fixes[0].in_program) << "the step takes another batch than the loader gives";
}

}  // namespace
}  // namespace unidle::diagnose::testing
