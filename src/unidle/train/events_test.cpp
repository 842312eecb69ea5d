#include "unidle/train/events.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include "unidle/base/files.h"
#include "unidle/probe/ring_reader.h"

namespace unidle::train {
namespace {

using ::testing::SizeIs;

class EventsTest : public ::testing::Test {
 protected:
  EventsTest() { ::setenv("UNIDLE_PROBE_DIR", folder_.path().c_str(), 1); }
  ~EventsTest() override { ::unsetenv("UNIDLE_PROBE_DIR"); }

  std::vector<probe::Slot> told() const {
    std::string problem;
    std::vector<probe::Slot> slots;
    const auto reader = probe::RingReader::open(folder_.path() / (std::to_string(::getpid()) + ".ring"), problem);
    if (reader == nullptr) {
      ADD_FAILURE() << problem;
      return slots;
    }
    reader->drain(slots);
    return slots;
  }

  TemporaryFolder folder_;
};

TEST_F(EventsTest, AStepIsToldWholeOnceItIsOver) {
  Events events;
  events.part(UNIDLE_STEP_SYNC, Events::now_ns());  // outside of steps: ignored
  events.begin_step(5);
  const std::uint64_t start = Events::now_ns() - 1000;
  for (int micro = 0; micro < 2; ++micro) {
    events.part(UNIDLE_STEP_INPUT, start);
    events.part(UNIDLE_STEP_FORWARD, start);
  }
  events.part(UNIDLE_STEP_SYNC, start);
  events.part(UNIDLE_STEP_SYNC, start);
  events.flush(start);
  EXPECT_THAT(told(), SizeIs(0));
  events.loss(4, 128, 0.5);  // a step that is over
  events.loss(5, 160, 0.25);
  events.end_step(32, 2);
  events.begin_step(6);
  events.end_step(32, 1);

  const auto slots = told();
  ASSERT_THAT(slots, SizeIs(3));
  EXPECT_EQ(slots[0].event.kind, static_cast<std::uint32_t>(UNIDLE_EVENT_LOSS));
  EXPECT_EQ(slots[0].event.step, 4U);
  EXPECT_EQ(slots[0].event.a, 128U);
  EXPECT_EQ(slots[0].event.value, 0.5);
  const unidle_step& step = slots[1].step;
  EXPECT_EQ(step.kind, static_cast<std::uint32_t>(UNIDLE_EVENT_STEP));
  EXPECT_EQ(step.step, 5U);
  EXPECT_EQ(step.samples, 32U);
  EXPECT_EQ(step.micro_batches, 2U);
  EXPECT_EQ(step.seen,
            static_cast<std::uint32_t>(UNIDLE_STEP_INPUT | UNIDLE_STEP_FORWARD | UNIDLE_STEP_SYNC | UNIDLE_STEP_LOSS));
  EXPECT_GE(step.input_ns, 2000U);
  EXPECT_GE(step.forward_ns, 2000U);
  EXPECT_EQ(step.backward_ns, 0U);
  EXPECT_EQ(step.syncs, 2U);
  EXPECT_GE(step.flush_ns, 1000U);
  EXPECT_EQ(step.loss, 0.25);
  EXPECT_EQ(step.samples_before, 160U);
  EXPECT_EQ(slots[2].step.step, 6U);
  EXPECT_EQ(slots[2].step.seen, 0U);
  EXPECT_EQ(slots[2].step.input_ns, 0U);
}

TEST_F(EventsTest, NothingHappensUnobserved) {
  ::unsetenv("UNIDLE_PROBE_DIR");
  Events events;
  EXPECT_FALSE(events.observed());
  events.begin_step(0);
  events.part(UNIDLE_STEP_INPUT, Events::now_ns());
  events.end_step(1, 1);
  events.loss(0, 0, 1);
}

}  // namespace
}  // namespace unidle::train
