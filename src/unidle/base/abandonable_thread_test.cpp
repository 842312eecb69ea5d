#include "unidle/base/abandonable_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <future>

#include "unidle/base/clock.h"

namespace unidle {
namespace {

TEST(AbandonableThread, IsStoppedAndWaitedFor) {
  bool stopped = false;
  AbandonableThread thread(
      [&](std::stop_token stop) { stopped = !system_clock().sleep_until(INT64_MAX / 2, std::move(stop)); });
  EXPECT_TRUE(thread.end(-1));
  EXPECT_TRUE(stopped);
  EXPECT_FALSE(has_abandoned_threads());
}

TEST(AbandonableThread, WhatDoesNotReturnIsLeftBehindUntilItDoes) {
  auto gate = std::make_shared<std::promise<void>>();
  auto over = std::make_shared<std::promise<void>>();
  auto keeps_over_alive = std::shared_ptr<void>(nullptr, [over](void*) { over->set_value(); });
  {
    AbandonableThread thread(
        [gate, keeps = std::move(keeps_over_alive)](const std::stop_token&) { gate->get_future().wait(); });
    EXPECT_FALSE(thread.end(0));
    EXPECT_TRUE(has_abandoned_threads());
    EXPECT_FALSE(thread.end(0));
  }
  EXPECT_TRUE(has_abandoned_threads());
  gate->set_value();
  over->get_future().wait();  // its objects are destroyed
  while (has_abandoned_threads()) {
    sched_yield();
  }
}

TEST(AbandonableThread, BlocksAllSignals) {
  sigset_t mask{};
  AbandonableThread thread([&](const std::stop_token&) { pthread_sigmask(SIG_BLOCK, nullptr, &mask); });
  EXPECT_TRUE(thread.end(-1));
  EXPECT_EQ(sigismember(&mask, SIGTERM), 1);
  sigset_t ours{};
  pthread_sigmask(SIG_BLOCK, nullptr, &ours);
  EXPECT_EQ(sigismember(&ours, SIGTERM), 0);
}

TEST(AbandonableThread, AnExceptionEndsItAndNothingElse) {
  AbandonableThread thread([](const std::stop_token&) { throw 1; });
  EXPECT_TRUE(thread.end(-1));
}

}  // namespace
}  // namespace unidle
