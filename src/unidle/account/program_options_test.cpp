#include "unidle/account/program_options.h"

#include <gmock/gmock.h>

#include "unidle/base/files.h"

namespace unidle::account {
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
  return omitted_options(load_run(folder.path() / "record"), command, effective);
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

TEST(OmittedSwitches, AreWhatTheySwitchOn) {
  const TemporaryFolder folder;
  record::Writer writer(folder.path() / "record");
  auto note = note_of({}, {});
  note["switches"] = {"--bf16", "--pin-memory", "--amp", "--resume", 7};
  writer.add(record::Note{1, 1, note});
  writer.flush();
  const account::RunData run = load_run(folder.path() / "record");
  const knobs::OmittedSwitches switches = omitted_switches(run, {"python", "train.py"});
  ASSERT_EQ(switches.size(), 2u) << "what --amp selects is not known";
  EXPECT_EQ(switches.at("precision.amp").at(0).option, "--bf16");
  EXPECT_EQ(switches.at("precision.amp").at(0).value, "bf16");
  EXPECT_EQ(switches.at("loader.pin_memory").at(0).value, true);
  EXPECT_TRUE(omitted_switches(run, {"bash", "run.sh"}).empty());
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
  EXPECT_EQ(option_choices(load_run(folder.path() / "record")),
            (knobs::OptionChoices{{"b", both}, {"batch_size", both}}));
}

}  // namespace
}  // namespace unidle::account
