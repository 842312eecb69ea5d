#include "unidle/telemetry/driver_call.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

namespace unidle::telemetry {
namespace {

TEST(DriverWork, AnAnswerIsGiven) {
  std::string problem = "of before";
  EXPECT_EQ(ask_driver<int>([] { return 7; }, problem), 7);
  EXPECT_EQ(problem, "");
  EXPECT_FALSE(has_abandoned_threads());
}

TEST(DriverWork, AFailureIsTold) {
  std::string problem;
  EXPECT_FALSE(ask_driver<int>([]() -> int { throw std::runtime_error("no more room"); }, problem));
  EXPECT_EQ(problem, "no more room");
}

TEST(DriverWork, ACallThatHangsIsNamedAndLeftBehindUntilItReturns) {
  const auto gate = std::make_shared<std::promise<void>>();
  const auto work = std::make_unique<DriverWork>([gate] {
    const DriverCall call("nvmlSomething");
    gate->get_future().wait();
  });
  EXPECT_FALSE(work->wait(0));
  EXPECT_FALSE(work->problem()) << "there is hope";
  EXPECT_FALSE(work->wait_patiently());
  ASSERT_TRUE(work->problem());
  EXPECT_TRUE(work->problem()->starts_with("the driver does not answer (nvmlSomething, ")) << *work->problem();
  EXPECT_TRUE(has_abandoned_threads());
  gate->set_value();
  EXPECT_TRUE(work->wait(-1));
  EXPECT_FALSE(work->problem());
  EXPECT_FALSE(has_abandoned_threads());
}

TEST(DriverWork, ManyCallsMayTakeLongerThanOne) {
  DriverWork work([] {
    for (std::int64_t end_ns = system_clock().now_ns() + kDriverPatience_ns + kNsPerSecond;
         system_clock().now_ns() < end_ns;) {
      const DriverCall call("nvmlSomething");
      system_clock().sleep_until(system_clock().now_ns() + 10 * kNsPerMs, {});
    }
  });
  EXPECT_TRUE(work.wait_patiently());
}

}  // namespace
}  // namespace unidle::telemetry
