#include "unidle/diagnose/in_program/framework.h"

#include <gmock/gmock.h>

#include "unidle/base/clock.h"
#include "unidle/base/files.h"
#include "unidle/diagnose/diagnose.h"
#include "unidle/diagnose/in_program/in_program.h"
#include "unidle/diagnose/testing/asking.h"

namespace unidle::diagnose::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A program that trains by a framework: line 3 hands it the settings.
class FrameworkTest : public ::testing::Test {
 protected:
  FrameworkTest() {
    signals.folder = folder.path();
    signals.command = {"python", "train.py"};
  }

  void uses(const std::string& package, const std::string& call, const std::string& rest = "") {
    signals.called = {{"train.py:4", package + ".trainer.Trainer.fit"}};
    write_file_atomic(folder.path() / "train.py", "from " + package + " import *\n\nx = " + call + "\n" + rest);
  }
  std::optional<knobs::InProgram> words(const std::string& knob, const knobs::Value& value) {
    Diagnosis diagnosis;
    diagnosis.findings.resize(1);
    diagnosis.findings[0].fixes = {knobs::change_of(knob, {}, value, "")};
    put_in_program(signals, {}, diagnosis);
    return diagnosis.findings[0].fixes[0].in_program;
  }
  std::string after(const std::string& knob, const knobs::Value& value) {
    const auto found = words(knob, value);
    return found && !found->after.empty() ? found->after.front() : "";
  }
  /// Validation takes as long as training does, which is nine times what is wanted.
  std::optional<knobs::InProgram> rarer() {
    signals.time.train = signals.time.validate = 10;
    Diagnosis diagnosis;
    diagnosis.findings.resize(1);
    diagnosis.findings[0].fixes = {knobs::change_of("validation.interval", {}, {}, "validate less often")};
    diagnosis.findings[0].fixes[0].in_code = true;
    put_in_program(signals, {}, diagnosis);
    text = to_text(diagnosis, 400, false);
    fix = diagnosis.findings[0].fixes[0];
    return fix.in_program;
  }
  std::string rarer_after() {
    const auto found = rarer();
    return found && !found->after.empty() ? found->after.front() : "";
  }

  TemporaryFolder folder;
  Signals signals;
  std::string text;
  knobs::Change fix;
};

TEST_F(FrameworkTest, TheArgumentOfEachFramework) {
  uses("transformers", "TrainingArguments('out')");
  EXPECT_EQ(words("precision.amp", "bf16")->words, "bf16=True");
  EXPECT_EQ(words("precision.amp", "bf16")->where, "train.py:3");
  EXPECT_EQ(after("loader.workers", 2), "x = TrainingArguments('out', dataloader_num_workers=2)");
  EXPECT_EQ(after("compile.mode", "reduce-overhead"),
            "x = TrainingArguments('out', torch_compile_mode=\"reduce-overhead\")");
  uses("lightning", "L.Trainer(precision='32', max_epochs=3)");
  EXPECT_EQ(after("precision.amp", "bf16"), "x = L.Trainer(precision=\"bf16-mixed\", max_epochs=3)");
  EXPECT_FALSE(words("loader.workers", 2)) << "the program makes its loaders itself";
  uses("accelerate", "Accelerator()");
  EXPECT_EQ(after("precision.amp", "fp16"), "x = Accelerator(mixed_precision=\"fp16\")");
}

TEST_F(FrameworkTest, AFormatReplacesTheOtherOne) {
  uses("transformers", "TrainingArguments('out', bf16=True)");
  EXPECT_EQ(after("precision.amp", "fp16"), "x = TrainingArguments('out', bf16=False, fp16=True)");
  EXPECT_EQ(words("precision.amp", "fp16")->words, "bf16=False, fp16=True");
  uses("transformers", "TrainingArguments('out', bf16=False)");
  EXPECT_EQ(words("precision.amp", "fp16")->words, "fp16=True");
}

TEST_F(FrameworkTest, OnlyWhereThereIsOneCallOfAFrameworkAtWork) {
  uses("lightning", "Trainer()", "y = Trainer()\n");
  EXPECT_FALSE(words("precision.amp", "bf16")) << "which of the two";
  uses("lightning", "Trainer()");
  EXPECT_TRUE(words("precision.amp", "bf16"));
  signals.called = {{"train.py:4", "timm.models.create_model"}};
  EXPECT_FALSE(words("precision.amp", "bf16")) << "another one trains";
  uses("lightning", "Trainer()");
  write_file_atomic(folder.path() / "train.py", "x = Trainer()\n");
  EXPECT_FALSE(words("precision.amp", "bf16")) << "a class of the program itself";
}

TEST_F(FrameworkTest, ACallThatUnpacksItsArgumentsIsOnlyQuoted) {
  uses("lightning", "Trainer(**options)");
  const auto found = words("precision.amp", "bf16");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->before, ElementsAre("x = Trainer(**options)"));
  EXPECT_THAT(found->after, IsEmpty());
}

TEST_F(FrameworkTest, RarerValidationInTheUnitOfTheCall) {
  uses("transformers", "TrainingArguments(eval_strategy='steps', eval_steps=50)");
  EXPECT_EQ(rarer_after(), "x = TrainingArguments(eval_strategy='steps', eval_steps=450)");
  EXPECT_THAT(text, HasSubstr("=> eval_steps=450 in TrainingArguments(...), train.py:3 [validation.every, exact]: "
                              "validate less often"));
  uses("transformers", "TrainingArguments(eval_strategy='epoch')");
  EXPECT_FALSE(rarer()) << "every epoch is the rarest";
  uses("transformers", "TrainingArguments(eval_steps=50, load_best_model_at_end=True)");
  EXPECT_FALSE(rarer()) << "save_steps has to agree";
  uses("lightning", "Trainer(max_epochs=30)");
  EXPECT_EQ(rarer_after(), "x = Trainer(max_epochs=30, check_val_every_n_epoch=9)");
  uses("lightning", "Trainer(max_epochs=3)");
  EXPECT_EQ(rarer_after(), "x = Trainer(max_epochs=3, check_val_every_n_epoch=3)") << "once at least";
  uses("lightning", "Trainer(val_check_interval=0.1)");
  EXPECT_EQ(rarer_after(), "x = Trainer(val_check_interval=0.9)");
  uses("lightning", "Trainer(val_check_interval=0.25)");
  EXPECT_EQ(rarer_after(), "x = Trainer(val_check_interval=1.0, check_val_every_n_epoch=2)") << "2.25 epochs";
  uses("lightning", "Trainer(val_check_interval=100)");
  EXPECT_FALSE(rarer()) << "it must not exceed the epoch";
  signals.loader.emplace();
  signals.loader->dataset_len = 32000;
  signals.loader->batch_size = 32;
  EXPECT_EQ(rarer_after(), "x = Trainer(val_check_interval=900)") << "of 1,000";
  signals.loader->batch_size = 100;
  EXPECT_EQ(rarer_after(), "x = Trainer(val_check_interval=1.0, check_val_every_n_epoch=3)") << "2.8 epochs of 320";
  signals.loader->batch_size = 44;
  EXPECT_EQ(rarer_after(), "x = Trainer(val_check_interval=1.0)") << "1.2 epochs of 727";
  signals.loader->batch_size = 100;
  uses("lightning", "Trainer(val_check_interval=100, max_epochs=1)");
  EXPECT_EQ(rarer_after(), "x = Trainer(val_check_interval=1.0, max_epochs=1)");
  uses("lightning", "Trainer(val_check_interval=100, check_val_every_n_epoch=None)");
  EXPECT_EQ(rarer_after(), "x = Trainer(val_check_interval=900, check_val_every_n_epoch=None)");
}

TEST_F(FrameworkTest, RarerValidationCanBeTriedAndIsSemanticWhereItsResultsDecide) {
  uses("lightning", "Trainer(max_epochs=30)");
  EXPECT_TRUE(rarer());
  EXPECT_EQ(fix.knob, "validation.every");
  EXPECT_EQ(fix.to, 9);
  EXPECT_TRUE(fix.by_hand && !fix.in_code) << "nothing changes it at run time";
  uses("lightning", "Trainer(max_epochs=30, callbacks=[EarlyStopping('loss')])");
  EXPECT_TRUE(rarer());
  EXPECT_EQ(fix.knob_class, knobs::KnobClass::kSemantic);
  EXPECT_THAT(text, HasSubstr("[validation.every, semantic]"));
  EXPECT_THAT(text, HasSubstr("depends on whether early stopping, a schedule"));
}

TEST_F(FrameworkTest, RarerValidationByAnOptionCanBeTried) {
  uses("torch", "x");
  signals.command = {"python", "train.py", "--eval-interval", "10"};
  const auto change = rarer();
  ASSERT_TRUE(change && change->word);
  EXPECT_EQ(change->word->index, 3U);
  EXPECT_EQ(change->word->after, "90");
  EXPECT_EQ(fix.knob, "validation.every");
  EXPECT_TRUE(fix.by_hand && !fix.in_code);
}

TEST_F(FrameworkTest, AFileThatWasChangedSinceMaySayItAlready) {
  uses("lightning", "Trainer(max_epochs=30, check_val_every_n_epoch=9)");
  signals.started_wall_ns = system_clock().wall_ns() - 3600 * kNsPerSecond;
  EXPECT_FALSE(rarer());
  EXPECT_TRUE(fix.in_code);
}

}  // namespace
}  // namespace unidle::diagnose::testing
