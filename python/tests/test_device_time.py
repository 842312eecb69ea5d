"""Device time by events that are asked for and never waited for, against events that are fakes."""

import os
import sys
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.facts import device_time
from _unidle_shim.host import probe  # noqa: E402
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
        self.ring = FakeRing()
        self.timer = device_time.DeviceTimer(
            types.SimpleNamespace(ring=self.ring), Event, lambda: "of the model", lambda: Event.capturing
        )

    def step(self, number, seconds):
        self.timer.begin(number)
        Event.clock += seconds
        self.timer.end()

    def test_a_step_is_reported_once_it_is_done(self):
        Event.done = False
        self.step(0, 0.25)
        self.timer.begin(1)
        self.assertEqual(self.ring.events, [])
        Event.done = True
        self.timer.collect()
        self.assertEqual(
            [(event[0], event[2], event[3]) for event in self.ring.events], [(probe.DEVICE, 250_000_000, 0)]
        )

    def test_events_are_used_again(self):
        for number in range(500):
            self.step(number, 0.001)
        self.assertEqual(Event.made, 128)
        self.assertEqual(self.timer.missed, 0)

    def test_a_device_far_behind_costs_reports_and_nothing_else(self):
        Event.done = False
        for number in range(200):
            self.step(number, 0.001)
        self.assertEqual(self.timer.missed, 200 - 64)
        Event.done = True
        self.timer.collect()
        self.assertEqual(len(self.ring.events), 64)

    def test_nothing_is_recorded_while_a_graph_is_captured(self):
        Event.capturing = True
        self.step(0, 1.0)
        Event.capturing = False
        self.timer.collect()
        self.assertEqual(self.ring.events, [])

    def test_nothing_is_asked_while_a_graph_is_captured(self):
        self.step(0, 1.0)  # waits to be asked for
        Event.capturing = True
        self.step(1, 1.0)
        Event.capturing = False
        self.timer.collect()
        self.assertEqual([event[3] for event in self.ring.events], [0])


if __name__ == "__main__":
    unittest.main()
