"""Device time by events that are asked for and never waited for, against events that are fakes."""

import os
import sys
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.facts import device_time
from _unidle_shim.host import event_kinds  # noqa: E402
from test_loop import FakeRing  # noqa: E402


class Event:
    """Done when the fake device says so. Waiting is an error."""

    clock = 0.0
    done = True
    capturing = False
    made = 0

    def __init__(self):
        Event.made += 1

    def record(self, stream):
        if stream != "of the model":
            raise AssertionError("the stream that is current need not be on the device of the model")
        self.at = Event.clock

    def query(self):
        if Event.capturing:
            raise AssertionError("a question to the device breaks off what is captured")
        return Event.done

    def elapsed_time(self, later):
        if not Event.done:
            raise RuntimeError("not ready: this would have waited")
        return (later.at - self.at) * 1e3

    def synchronize(self):
        raise AssertionError("nobody waits for the device on our behalf")


class DeviceTimerTest(unittest.TestCase):
    def setUp(self):
        Event.clock, Event.done, Event.made, Event.capturing = 0.0, True, 0, False
        self.ring, self.waits = FakeRing(), 0
        self.timer = device_time.DeviceTimer(
            types.SimpleNamespace(ring=self.ring),
            Event,
            lambda: "of the model",
            lambda: Event.capturing,
            lambda: self.waits,
        )

    def span(self, seconds):
        """What one optimiser does."""
        self.timer.begin()
        Event.clock += seconds
        self.timer.before_optimizer()
        self.timer.end()

    def step(self, number, *spans):
        begin = device_time.now()
        for seconds in spans:
            self.span(seconds)
        self.timer.step_over(number, begin, device_time.now())

    def told(self):
        self.timer.collect()
        return [(event[0], event[2], event[3]) for event in self.ring.events]

    def test_a_step_is_reported_once_it_is_done(self):
        Event.done = False
        self.step(0, 0.25)
        self.timer.begin()
        self.assertEqual(self.told(), [])
        Event.done = True
        self.assertEqual(self.told(), [(event_kinds.DEVICE, 250_000_000, 0)])

    def test_a_step_is_reported_once_it_is_over(self):
        begin = device_time.now()
        self.span(0.25)
        self.assertEqual(self.told(), [])  # another optimiser may come
        self.span(0.5)
        self.timer.step_over(7, begin, device_time.now())
        self.assertEqual(self.told(), [(event_kinds.DEVICE, 750_000_000, 7)])

    def test_events_are_used_again(self):
        for number in range(500):
            self.step(number, 0.001)
        self.assertEqual(Event.made, 192)
        self.assertEqual(self.timer.missed, 0)
        self.assertEqual([event[2] for event in self.told()], list(range(500)))

    def test_a_device_far_behind_costs_reports_and_nothing_else(self):
        Event.done = False
        for number in range(200):
            self.step(number, 0.001)
        self.assertEqual(self.timer.missed, 200 - 64)
        Event.done = True
        self.assertEqual(len(self.told()), 64)

    def test_a_step_of_which_a_part_was_missed_is_not_reported(self):
        begin = device_time.now()
        self.span(0.25)
        Event.capturing = True
        self.span(0.25)
        Event.capturing = False
        self.timer.step_over(0, begin, device_time.now())
        self.step(1, 0.5)
        self.assertEqual(self.told(), [(event_kinds.DEVICE, 500_000_000, 1)])

    def test_a_span_without_an_end_is_dropped(self):
        begin = device_time.now()
        self.timer.begin()
        self.timer.drop()
        Event.clock += 100
        self.timer.end()  # of a step that is observed in full again
        self.timer.step_over(0, begin, device_time.now())
        self.step(1, 0.5)
        self.assertEqual(self.told(), [(event_kinds.DEVICE, 500_000_000, 1)])

    def test_nothing_is_recorded_while_a_graph_is_captured(self):
        Event.capturing = True
        self.step(0, 1.0)
        Event.capturing = False
        self.assertEqual(self.told(), [])

    def test_nothing_is_asked_while_a_graph_is_captured(self):
        self.step(0, 1.0)  # waits to be asked for
        Event.capturing = True
        self.step(1, 1.0)
        Event.capturing = False
        self.assertEqual([event[2] for event in self.told()], [0])

    def test_a_device_that_keeps_up_is_counted(self):
        self.step(0, 0.1)
        Event.done = False
        self.step(1, 0.1)
        self.assertEqual((self.timer.asked, self.timer.kept_up), (2, 1))

    def test_where_the_host_has_waited_keeping_up_means_nothing(self):
        self.timer.begin()
        self.waits += 1
        self.timer.before_optimizer()
        self.timer.end()
        self.timer.begin()
        self.timer.before_optimizer()
        self.timer.may_have_waited(())
        self.timer.end()
        self.assertEqual((self.timer.asked, self.timer.kept_up), (0, 0))


if __name__ == "__main__":
    unittest.main()
