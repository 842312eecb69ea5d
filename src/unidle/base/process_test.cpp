#include "unidle/base/process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "unidle/base/error.h"

namespace unidle {
namespace {

using namespace std::chrono_literals;

Command shell(const std::string& script) {
  Command command;
  command.argv = {"sh", "-c", script};
  return command;
}

TEST(Process, CollectsBothStreamsAndTheCode) {
  const Finished finished = run_to_end(shell("echo out; echo err >&2; exit 7"));
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
  EXPECT_EQ(finished.status.code, 7);
  EXPECT_EQ(finished.status.shell_code(), 7);
  EXPECT_FALSE(finished.status.ok());
}

TEST(Process, ASignalIsNotACode) {
  const Finished finished = run_to_end(shell("kill -TERM $$"));
  EXPECT_EQ(finished.status.signal, SIGTERM);
  EXPECT_EQ(finished.status.shell_code(), 128 + SIGTERM);
}

TEST(Process, EnvironmentAndFolderReachTheChild) {
  Command command = shell("echo $UNIDLE_TEST_VALUE; pwd");
  command.environment["UNIDLE_TEST_VALUE"] = "42";
  command.folder = "/";
  EXPECT_EQ(run_to_end(command).out, "42\n/\n");
}

TEST(Process, MoreOutputThanAPipeHolds) {
  EXPECT_EQ(run_to_end(shell("head -c 3000000 /dev/zero")).out.size(), 3'000'000U);
}

TEST(Process, AMissingProgramIsAnInputErrorThatNamesIt) {
  Command command;
  command.argv = {"unidle-no-such-program"};
  try {
    ChildProcess child(command);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_EQ(error.subject(), "unidle-no-such-program");
  }
}

TEST(Process, TheLimitEndsTheWholeGroup) {
  const Finished finished = run_to_end(shell("sleep 100 & sleep 100"), 100ms);
  EXPECT_TRUE(finished.timed_out);
  EXPECT_EQ(finished.status.signal, SIGTERM);
}

TEST(Process, AStopRequestEndsItAndIsNoTimeOut) {
  std::stop_source stop;
  stop.request_stop();
  const Finished finished = run_to_end(shell("sleep 100"), std::nullopt, stop.get_token());
  EXPECT_FALSE(finished.timed_out);
  EXPECT_EQ(finished.status.signal, SIGTERM);
}

TEST(Process, AGrandchildThatHoldsThePipeIsNotWaitedFor) {
  const Finished finished = run_to_end(shell("sleep 3 & echo done"), 2000ms);
  EXPECT_FALSE(finished.timed_out);
  EXPECT_EQ(finished.out, "done\n");
}

TEST(Process, TheDestructorLeavesNoChild) {
  pid_t pid = 0;
  {
    Command command = shell("sleep 100");
    command.own_group = true;
    const ChildProcess child(command);
    pid = child.pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

}  // namespace
}  // namespace unidle
