#include "unidle/experiment/protection.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/experiment/trackers.h"
#include "unidle/experiment/working_folder.h"

namespace unidle::experiment {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ProtectionNames, AreReadBack) {
  for (const Protection each : {Protection::kLayers, Protection::kWriteLock, Protection::kCopy, Protection::kInPlace}) {
    EXPECT_EQ(protection_named(to_string(each)), each);
    EXPECT_THAT(in_words(each), Not(IsEmpty()));
  }
  EXPECT_FALSE(protection_named("none"));
  EXPECT_TRUE(is_enforced(Protection::kLayers) && is_enforced(Protection::kWriteLock));
  EXPECT_FALSE(is_enforced(Protection::kCopy) || is_enforced(Protection::kInPlace));
}

TEST(ProtectionOfTrials, IsTheBestAndNeverLessThanTheMachineOffers) {
  const TemporaryFolder scratch;
  fs::create_directories(scratch.path() / "project");
  const ProtectionOptions found = ways_to_protect(scratch.path() / "project", {"python", "train.py"}, scratch.path());
  const bool certain = is_enforced(found.ways.front());
  EXPECT_TRUE(std::all_of(found.ways.begin(), found.ways.end(), [&](auto way) { return is_enforced(way) == certain; }));
  EXPECT_TRUE(certain || found.ways.back() == Protection::kInPlace);
  EXPECT_EQ(found.lacking.empty(), found.ways.front() == Protection::kLayers) << found.lacking;
}

TEST(ProtectionOfTrials, WithoutACertainOneSomebodyHasToAllowIt) {
  ProtectionOptions found{{Protection::kInPlace}, "no layers: as a test has it", false};
  EXPECT_THROW(need_permission(found, Protection::kInPlace, false), Error);
  EXPECT_NO_THROW(need_permission(found, Protection::kInPlace, true));
  EXPECT_NO_THROW(need_permission(found, Protection::kLayers, false));
  found.asked_for = true;
  EXPECT_NO_THROW(need_permission(found, Protection::kInPlace, false));
}

TEST(ProtectionOfTrials, AFolderIsNotCopiedIntoItself) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "tmp");
  const ProtectionOptions found = ways_to_protect(folder.path(), {"python", "train.py"}, folder.path() / "tmp");
  EXPECT_THAT(found.ways, Not(Contains(Protection::kCopy)));
  EXPECT_THAT(found.ways, Not(Contains(Protection::kWriteLock)));
}

TEST(ProtectionOfTrials, CopiesForAllButLayers) {
  const TemporaryFolder scratch;
  const fs::path project = scratch.path() / "project";
  fs::create_directories(project);
  std::ofstream(project / "train.py") << "x";
  observe::Options layers, lock, copy, in_place;
  protect(layers, Protection::kLayers, project, {}, scratch.path() / "a");
  EXPECT_EQ(layers.folder, project);
  EXPECT_TRUE(layers.sandbox.has_value());
  protect(lock, Protection::kWriteLock, project, {}, scratch.path() / "b");
  EXPECT_TRUE(fs::exists(lock.folder / "train.py") && lock.folder != project);
  EXPECT_TRUE(lock.sandbox.has_value());
  EXPECT_EQ(lock.environment["TMPDIR"], scratch.path() / "b/tmp");
  protect(copy, Protection::kCopy, project, {}, scratch.path() / "c");
  EXPECT_TRUE(fs::exists(copy.folder / "train.py") && copy.folder != project && !copy.sandbox);
  protect(in_place, Protection::kInPlace, project, {}, scratch.path() / "d");
  EXPECT_TRUE(in_place.folder.empty() && !in_place.sandbox);
  for (observe::Options* each : {&layers, &lock, &copy, &in_place}) {
    EXPECT_EQ(each->environment["WANDB_MODE"], "offline");
  }
}

TEST(ProtectionOfTrials, EditsReachTheTrialAlone) {
  const TemporaryFolder scratch;
  const fs::path project = scratch.path() / "project";
  fs::create_directories(project / "code");
  write_file_atomic(project / "code/train.py", "x");
  fs::permissions(project / "code/train.py", fs::perms(0750));
  for (const Protection way : {Protection::kLayers, Protection::kWriteLock, Protection::kCopy}) {
    const fs::path own = scratch.path() / std::string(to_string(way));
    observe::Options run;
    protect(run, way, project, {}, own);
    edit_for_trial(run, way, project, own, {{"code/train.py", "y"}});
    const fs::path seen =
        way == Protection::kLayers ? run.sandbox->replaced.at(project / "code/train.py") : run.folder / "code/train.py";
    EXPECT_EQ(read_file(seen), "y");
    EXPECT_EQ(fs::status(seen).permissions(), fs::perms(0750)) << to_string(way);  // ./train.py needs them
    EXPECT_EQ(read_file(project / "code/train.py"), "x");
  }
}

TEST(ProtectionOfTrials, NoEditFollowsALinkOutOfACopy) {
  const TemporaryFolder scratch;
  const fs::path project = scratch.path() / "project";
  fs::create_directories(scratch.path() / "library");
  fs::create_directories(project);
  write_file_atomic(scratch.path() / "library/a.py", "x");
  fs::create_symlink(scratch.path() / "library", project / "code");
  fs::create_symlink(scratch.path() / "library/a.py", project / "a.py");
  observe::Options run;
  protect(run, Protection::kCopy, project, {}, scratch.path() / "own");
  for (const char* file : {"code/a.py", "a.py"}) {
    EXPECT_THROW(edit_for_trial(run, Protection::kCopy, project, scratch.path() / "own", {{file, "y"}}), Error) << file;
  }
  EXPECT_EQ(read_file(scratch.path() / "library/a.py"), "x");
}

TEST(ProtectionOfTrials, NoEditOfACopyThatIsNotRead) {
  const TemporaryFolder scratch;
  const fs::path project = scratch.path() / "project";
  make_folders(project);
  write_file_atomic(project / "train.py", "x");
  observe::Options run;
  run.argv = {"python", (project / "train.py").string()};
  protect(run, Protection::kCopy, project, {}, scratch.path() / "own");
  EXPECT_THROW(edit_for_trial(run, Protection::kCopy, project, scratch.path() / "own", {{"train.py", "y"}}), Error);
  EXPECT_EQ(read_file(run.folder / "train.py"), "x");
}

TEST(Trackers, WriteToTheTrialsFolderAndFindNoToken) {
  auto environment = muted_trackers("/scratch/own");
  EXPECT_EQ(environment["MLFLOW_TRACKING_URI"], "file:///scratch/own/mlruns");
  EXPECT_EQ(environment["WANDB_DIR"], "/scratch/own");
  for (const char* token :
       {"WANDB_API_KEY", "HF_TOKEN", "COMET_API_KEY", "NEPTUNE_API_TOKEN", "CLEARML_API_SECRET_KEY"}) {
    ASSERT_TRUE(environment.contains(token)) << token;
    EXPECT_EQ(environment[token], "") << token;
  }
}

TEST(Places, AreThoseThatCommandEnvironmentScriptsAndLinksName) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "config.yaml") << "out: /data/runs/x\n";
  fs::create_symlink("/data/models", folder.path() / "models");
  ::setenv("UNIDLE_TEST_PLACE", "/data/a:/data/b", 1);
  const std::vector<fs::path> places = places_of(folder.path(), {"python", "train.py", "--out=/data/out", "/data/in"});
  ::unsetenv("UNIDLE_TEST_PLACE");
  for (const char* place : {"/data/runs/x", "/data/a", "/data/b", "/data/out", "/data/in"}) {
    EXPECT_THAT(places, Contains(fs::path(place)));
  }
  EXPECT_THAT(places, Contains(folder.path() / "models"));
  EXPECT_THAT(places, Contains(folder.path()));
}

}  // namespace
}  // namespace unidle::experiment
