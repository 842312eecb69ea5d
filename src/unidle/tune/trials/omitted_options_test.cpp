// Options that the program accepts but the command omits.
#include <gmock/gmock.h>

#include "unidle/base/files.h"
#include "unidle/knobs/reach.h"
#include "unidle/tune/trials/apply_runner.h"
#include "unidle/tune/trials/trial_record.h"

namespace unidle::tune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

knobs::OmittedOptions omitted_in(const nlohmann::json& note, const Words& command,
                                 const knobs::Settings& effective = {}) {
  const TemporaryFolder folder;
  record::Writer writer(folder.path() / "record");
  writer.add(record::Note{1, 1, note});
  writer.flush();
  return omitted_options(account::load_run(folder.path() / "record"), command, effective);
}

nlohmann::json note_of(const Words& words, const std::vector<Words>& options) {
  return {{"type", "options"}, {"program", "train.py"}, {"words", words}, {"options", options}};
}

TEST(OmittedOptions, AreWhatTheProgramTakesByKnob) {
  const auto note = note_of({}, {{"--batch-size", "64"},
                                 {"--test-batch-size", "100"},
                                 {"--lr", "0.001"},
                                 {"--accumulation-steps", "4"},
                                 {"--seed", "1"}});
  const knobs::OmittedOptions omitted =
      omitted_in(note, {"python", "train.py"}, {{"batch.size", 64}, {"batch.accumulation", 4}});
  EXPECT_EQ(omitted, (knobs::OmittedOptions{{"batch.size", {"--batch-size", "64"}},
                                            {"batch.accumulation", {"--accumulation-steps", "4"}},
                                            {"optimizer.lr", {"--lr", "0.001"}}}));
  EXPECT_EQ(omitted_in(note, {"python", "train.py"}, {{"batch.size", 16}}).count("batch.size"), 0u)
      << "64 of it are not one batch";
  EXPECT_EQ(omitted_in(note_of({}, {{"--batch-size", "8"}, {"--micro-batch-size", "8"}}), {"python", "train.py"})
                .count("batch.size"),
            0u)
      << "one of two";
}

TEST(OmittedOptions, OfADamagedNoteAreNone) {
  const Words command = {"python", "train.py"};
  for (const nlohmann::json& options : {nlohmann::json(3), nlohmann::json("--batch-size"), nlohmann::json({{1, 2}}),
                                        nlohmann::json::array({"--batch-size", 4}), nlohmann::json::object()}) {
    EXPECT_THAT(omitted_in({{"type", "options"}, {"program", "train.py"}, {"words", 7}, {"options", options}}, command),
                IsEmpty())
        << options;
  }
}

TEST(OmittedOptions, AreOfTheProgramAtTheEndOfTheCommand) {
  const Words words = {"--epochs", "3"};
  const auto note = note_of(words, {{"--batch-size", "64"}});
  const auto found = [&](const Words& command) { return omitted_in(note, command).size(); };
  EXPECT_EQ(found({"python", "./train.py", "--epochs", "3"}), 1u);
  EXPECT_EQ(found({"torchrun", "--nproc_per_node", "2", "train.py", "--epochs", "3"}), 1u);
  EXPECT_EQ(found({"python", "-m", "project.train", "--epochs", "3"}), 1u);
  EXPECT_EQ(found({"bash", "run.sh", "--epochs", "3"}), 0u);
  EXPECT_EQ(found({"python", "train.py"}), 0u);
  EXPECT_EQ(found({"--epochs", "3"}), 0u);
}

TEST(OptionChoices, AreWhatTheParserLists) {
  const TemporaryFolder folder;
  record::Writer writer(folder.path() / "record");
  writer.add(record::Note{1,
                          1,
                          {{"type", "arguments"},
                           {"arguments",
                            {{{"names", {"b", "batch_size"}}, {"choices", {"16", "32"}}},
                             {{"names", {"lr"}}, {"choices", nullptr}},
                             {{"names", 3}, {"choices", {"1"}}},
                             7}}}});
  writer.add(record::Note{2, 1, {{"type", "arguments"}, {"arguments", 3}}});
  writer.flush();
  const Words both = {"16", "32"};
  EXPECT_EQ(option_choices(account::load_run(folder.path() / "record")),
            (knobs::OptionChoices{{"b", both}, {"batch_size", both}}));
}

TEST(OptionChoices, NoOtherValueIsTried) {
  const knobs::OptionChoices choices = {{"batch_size", {"16", "32"}}, {"b", {"16", "32"}}, {"amp_dtype", {"float16"}}};
  EXPECT_EQ(knobs::why_refused({"python", "t.py", "--batch-size", "32", "-b", "16", "--x", "64"}, choices), "");
  EXPECT_EQ(knobs::why_refused({"python", "t.py", "--batch-size", "64"}, choices),
            "--batch-size accepts 16, 32; 64 is not one of them");
  EXPECT_NE(knobs::why_refused({"python", "t.py", "--batch_size=64"}, choices), "");
  EXPECT_NE(knobs::why_refused({"python", "t.py", "-b", "64"}, choices), "");
  EXPECT_EQ(knobs::why_refused({"python", "t.py", "batch_size", "64", "--batch-size"}, choices), "");
  ProgramPlan plan;
  plan.choices = choices;
  plan.omitted = {{"batch.size", {"--batch-size", "16"}}};
  const Words command = {"python", "t.py", "--amp-dtype", "float16"};
  EXPECT_EQ(why_refused(plan, command, {{"batch.size", 32}}), "");
  EXPECT_NE(why_refused(plan, command, {{"batch.size", 64}}), "");
  EXPECT_NE(why_refused(plan, {"python", "t.py", "--batch-size", "16"}, {{"batch.size", 64}}), "");
}

}  // namespace
}  // namespace unidle::tune
