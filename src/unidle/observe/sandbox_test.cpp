// Attacks on the user's files. Each test compares listings with contents, modes and times before and after.
#include "unidle/observe/sandbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <map>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/observe/mounts.h"
#include "unidle/observe/observe.h"

namespace unidle::observe {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string described(const fs::path& path) {
  struct stat status {};
  ::lstat(path.c_str(), &status);
  std::string text = std::to_string(status.st_mode) + " " + std::to_string(status.st_ino) + " " +
                     std::to_string(status.st_nlink) + " " + std::to_string(status.st_size) + " " +
                     std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) + " ";
  if (S_ISLNK(status.st_mode)) {
    text += fs::read_symlink(path).string();
  } else if (S_ISREG(status.st_mode)) {
    text += read_file(path);
  }
  return text;
}

using Listing = std::map<std::string, std::string>;

Listing listing(const fs::path& folder) {
  Listing found = {{".", described(folder)}};
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    found[entry.path().lexically_relative(folder)] = described(entry.path());
  }
  return found;
}

/// Names of the changed files.
std::vector<std::string> differences(const Listing& before, const Listing& after) {
  std::vector<std::string> names;
  for (const auto* each : {&before, &after}) {
    for (const auto& [name, text] : *each) {
      const auto a = before.find(name);
      const auto b = after.find(name);
      if (a == before.end() || b == after.end() || a->second != b->second) {
        names.push_back(name);
      }
    }
  }
  return names;
}

/// A home with a project, a checkpoint folder outside of it, links, a database and a hard link.
class Sandboxed : public ::testing::TestWithParam<SandboxOptions::Kind> {
 protected:
  void SetUp() override {
    for (const char* folder : {"home/project/runs/best", "home/models/large", "scratch"}) {
      fs::create_directories(root_.path() / folder);
    }
    for (const char* file : {"home/project/train.log", "home/project/runs/best/model.pt", "home/models/large/a.bin",
                             "home/models/large/b.bin", "home/project/shared.bin"}) {
      std::ofstream(root_.path() / file) << "the user's " << file << '\n';
    }
    fs::create_symlink(root_.path() / "home/models", root_.path() / "home/project/models");
    fs::create_hard_link(root_.path() / "home/project/shared.bin", root_.path() / "home/models/shared.bin");
    options_.scratch = root_.path() / "scratch";
    options_.places = {home()};
    options_.kind = GetParam();
    if (const auto why = why_no_sandbox(options_)) {
      GTEST_SKIP() << *why;
    }
  }
  fs::path home() const { return root_.path() / "home"; }

  Result attack(const std::string& script) {
    Options run;
    run.argv = {"bash", "-c", script};
    run.record = root_.path() / "record";
    run.folder = home() / "project";
    run.environment["HOME"] = home();
    run.quiet = true;
    run.python = false;
    run.sandbox = options_;
    return observe::run(run);
  }

  TemporaryFolder root_;
  SandboxOptions options_;
};

class Layered : public Sandboxed {};
INSTANTIATE_TEST_SUITE_P(Kinds, Layered, ::testing::Values(SandboxOptions::Kind::kLayers));

const char* const kPython = R"(
import ctypes, mmap, os, pathlib, shutil, sqlite3, sys
from shutil import rmtree
from os import open as bound_early, rename
)";

/// What a program may do to its user's files; it must not notice that nothing changes.
const std::map<std::string, std::string> kAttacks = {
    {"rm", "rm -rf runs models/ ../models && test ! -e runs && test ! -e ../models"},
    {"rmtree of a link's target", "py 'rmtree(os.path.realpath(\"models\"))'"},
    {"unlink by pathlib", "py 'pathlib.Path(\"models/large/a.bin\").unlink(); pathlib.Path(\"train.log\").unlink()'"},
    {"a library that opens by itself",
     "py 'libc = ctypes.CDLL(None); fd = libc.open(b\"train.log\", os.O_WRONLY | "
     "os.O_TRUNC); assert fd > 0 and libc.write(fd, b\"x\", 1) == 1'"},
    {"truncate", "truncate -s 0 train.log models/large/b.bin && test ! -s train.log"},
    {"mmap", "py 'f = open(\"train.log\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[:3] = b\"XXX\"; m.flush()'"},
    {"append", "echo more >>train.log && echo more >>models/large/a.bin && grep -q more train.log"},
    {"hard link", "ln train.log again && echo x >again && echo y >shared.bin"},
    {"swap of links", "rm models && ln -s /etc models && ln -sfn runs/best latest"},
    {"move of files",
     "py 'shutil.move(\"train.log\", \"../models/train.log\"); "
     "os.replace(\"shared.bin\", \"runs/best/model.pt\")'"},
    {"data base",
     "py 'c = sqlite3.connect(\"study.db\"); c.execute(\"create table t (x)\"); c.commit(); "
     "c = sqlite3.connect(\"../models/study.db\"); c.execute(\"create table t (x)\"); c.commit()'"},
    {"new files", "mkdir -p out/deep ../models/out && echo x >out/deep/y && echo x >../models/out/y"},
    {"temporary files", "t=$(mktemp) && echo x >$t && grep -q x $t && rm $t"},
    {"shared memory", "echo x >/dev/shm/unidle-test-$$ && rm /dev/shm/unidle-test-$$"}};

const std::map<std::string, std::string> kAttacksOnMetadata = {
    {"chmod", "chmod -R 000 models/large; chmod 777 train.log ."},
    {"times", "touch -d 2001-01-01 train.log models/large/a.bin"}};

std::string script_of(const std::string& attack) {
  return "py() { " + std::string("python3 -c '") + kPython + "'\"$1\"; }\n" + attack;
}

TEST_P(Sandboxed, NoAttackReachesAFile) {
  for (const auto& [name, attack_of] : kAttacks) {
    const Listing before = listing(home());
    attack(script_of(attack_of));
    EXPECT_THAT(differences(before, listing(home())), IsEmpty()) << name;
    fs::remove_all(root_.path() / "record");
  }
}

TEST_P(Layered, AndTheProgramDoesNotNotice) {
  std::map<std::string, std::string> attacks = kAttacks;
  attacks.insert(kAttacksOnMetadata.begin(), kAttacksOnMetadata.end());
  for (const auto& [name, attack_of] : attacks) {
    const Listing before = listing(home());
    const Result result = attack(script_of(attack_of));
    EXPECT_TRUE(result.status.ok()) << name << ": " << result.err_tail;
    EXPECT_THAT(differences(before, listing(home())), IsEmpty()) << name;
    fs::remove_all(root_.path() / "record");
  }
}

TEST_P(Layered, AFolderIsNotRenamed) {
  const Listing before = listing(home());
  attack("mv runs old; mv ../models ../old; python3 -c 'import os; os.rename(\"runs\", \"older\")'");
  EXPECT_THAT(differences(before, listing(home())), IsEmpty());
}

TEST_P(Layered, WhoWhereAndWhatIsReadStayTheSame) {
  std::string user = std::to_string(::geteuid());
  const Result result =
      attack("id -u; id -g; pwd; cat train.log; readlink models; echo >/dev/null; kill -0 $PPID && echo parent");
  EXPECT_EQ(result.out_tail, user + "\n" + std::to_string(::getegid()) + "\n" + (home() / "project").string() +
                                 "\nthe user's home/project/train.log\n" + (home() / "models").string() + "\nparent\n");
}

TEST_P(Layered, WhatIsSharedIsSeenFromOutside) {
  fs::create_directories(root_.path() / "shared");
  options_.shared = {root_.path() / "shared"};
  const Result result = attack("echo seen >'" + (root_.path() / "shared/file").string() + "'");
  EXPECT_TRUE(result.status.ok()) << result.err_tail;
  EXPECT_EQ(read_file(root_.path() / "shared/file"), "seen\n");
}

TEST_P(Layered, WhatIsHiddenReadsAsEmpty) {
  std::ofstream(home() / ".netrc") << "password secret";
  options_.hidden = {home() / ".netrc", home() / ".absent"};
  const Result result = attack("cat ~/.netrc; test ! -e ~/.absent");
  EXPECT_TRUE(result.status.ok()) << result.err_tail;
  EXPECT_EQ(result.out_tail, "");
}

TEST_P(Layered, WhatIsReplacedIsAnotherFile) {
  std::ofstream(root_.path() / "edited") << "another";
  options_.replaced = {{home() / "project/train.log", root_.path() / "edited"},
                       {home() / "absent", root_.path() / "edited"}};
  const Result result =
      attack("cat train.log; echo more >>train.log; mv train.log x && mv x train.log; test ! -e ~/absent");
  EXPECT_TRUE(result.status.ok()) << result.err_tail;
  EXPECT_EQ(result.out_tail, "another");
  EXPECT_EQ(read_file(home() / "project/train.log"), "the user's home/project/train.log\n");
}

TEST_P(Layered, WhatIsReplacedKeepsItsMode) {
  std::ofstream(root_.path() / "edited") << "echo edited";
  fs::permissions(home() / "project/train.log", fs::perms(0555));
  options_.replaced = {{home() / "project/train.log", root_.path() / "edited"}};
  const Result result = attack("stat -c %a train.log; cat train.log");
  EXPECT_TRUE(result.status.ok()) << result.err_tail;
  EXPECT_EQ(result.out_tail, "555\necho edited");
  EXPECT_EQ(read_file(home() / "project/train.log"), "the user's home/project/train.log\n");
}

TEST_P(Layered, LayersMayBeInMemory) {
  options_.in_memory = true;
  options_.scratch = root_.path() / "empty";
  fs::create_directories(options_.scratch);
  const Listing before = listing(home());
  EXPECT_TRUE(attack("echo x >train.log && rm -rf models/large/ && test ! -e models/large").status.ok());
  EXPECT_THAT(differences(before, listing(home())), IsEmpty());
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(options_.scratch)) {
    EXPECT_TRUE(entry.is_directory()) << entry.path();
  }
}

TEST_P(Layered, PipesLeadOutside) {
  const fs::path pipe = root_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const UniqueFd end(::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));  // so that opening the FIFO never waits
  EXPECT_TRUE(attack("timeout 20 bash -c 'echo through >../../pipe'").status.ok());
  std::array<char, 64> bytes{};
  EXPECT_EQ(::read(end.get(), bytes.data(), bytes.size()), 8);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Sandboxed,
                         ::testing::Values(SandboxOptions::Kind::kLayers, SandboxOptions::Kind::kWriteLock));

/// Root may mount anything; other users need a user namespace. Runs the same tests again without privileges.
TEST(SandboxOfAnybody, HoldsAsWell) {
  const std::string self = fs::read_symlink("/proc/self/exe");
  if (::geteuid() != 0) {
    GTEST_SKIP() << "these tests have run as somebody without rights already";
  }
  Command command;
  command.argv = {
      "setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", self, "--gtest_filter=*Layered*:*Sandboxed*"};
  command.out = command.err = Command::Stream::kPipe;
  command.folder = "/";
  const Finished done = run_to_end(command);
  EXPECT_TRUE(done.status.ok()) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("Sandboxed.NoAttackReachesAFile"));
}

TEST(Mounts, AreReadWithTheirStrangeNames) {
  const std::vector<Mount> mounts = parse_mounts(
      "22 28 0:20 / /proc rw,nosuid - proc proc rw\n"
      "28 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "40 28 0:50 /a /mnt/with\\040blank ro,relatime shared:2 master:3 - nfs4 host:/a rw\n"
      "41 28 0:51 / /data rw - squashfs /dev/loop0 ro\n"
      "42 28 0:52 / /no\\number\\04 rw - tmpfs tmpfs rw\n"
      "damaged\n");
  ASSERT_EQ(mounts.size(), 5U);
  EXPECT_EQ(mounts[4].point, "/no\\number\\04");
  EXPECT_FALSE(mounts[0].is_storage());
  EXPECT_TRUE(mounts[1].is_storage() && mounts[1].writable);
  EXPECT_EQ(mounts[2].point, "/mnt/with blank");
  EXPECT_FALSE(mounts[2].writable);
  EXPECT_FALSE(mounts[3].writable) << "the file system itself is read-only";
}

TEST(Mounts, ManyDeadSocketsHideNoPipe) {
  const TemporaryFolder folder;
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(::mkfifo((folder.path() / std::to_string(i)).c_str(), 0600), 0);
  }
  EXPECT_EQ(meeting_points(folder.path()).size(), 300U);
}

TEST(Mounts, WithinMeansWholeNames) {
  EXPECT_TRUE(is_within("/home/me", "/home"));
  EXPECT_TRUE(is_within("/home", "/home"));
  EXPECT_TRUE(is_within("/home", "/"));
  EXPECT_FALSE(is_within("/home2", "/home"));
  EXPECT_FALSE(is_within("/", "/home"));
}

}  // namespace
}  // namespace unidle::observe
