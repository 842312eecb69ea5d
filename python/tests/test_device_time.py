"""Device time from events that are queried and never waited for, with fake events."""

import os
import sys
import types
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.facts import device_time
from _unidle_shim.host import event_kinds  # noqa: E402
from test_loop import FakeRing  # noqa: E402


class Event:
    """Done when the fake device says so. Waiting is an error."""

    clock = 0.0
    done = True
    capturing = False
    refuses = False
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
        return Event.done is True or self.at <= Event.done

    def elapsed_time(self, later):
        if not (self.query() and later.query()):
            raise AssertionError("not ready: only what is known to be over is asked for its time")
        if Event.refuses:
            raise RuntimeError("device not ready")
        return (later.at - self.at) * 1e3

    def synchronize(self):
        raise AssertionError("nobody waits for the device on our behalf")


class DeviceTimerTest(unittest.TestCase):
    def setUp(self):
        Event.clock, Event.done, Event.made, Event.capturing, Event.refuses = 0.0, True, 0, False, False
        self.ring, self.waits, self.pauses, self.host = FakeRing(), 0, 0, 0.0
        self.timer = device_time.DeviceTimer(
            types.SimpleNamespace(ring=self.ring),
            Event,
            lambda: "of the model",
            lambda: Event.capturing,
            lambda: self.waits,
            lambda: self.pauses,
        )
        patch = unittest.mock.patch.object(device_time, "now", lambda: int(self.host * 1e9))
        patch.start()
        self.addCleanup(patch.stop)

    def now(self):
        """The host's time advances, too."""
        self.host += 1e-6
        return int(self.host * 1e9)

    def span(self, seconds, idle=0.0):
        """The work of one optimiser, after idle time of the device."""
        Event.clock += idle
        self.now()
        self.timer.begin()
        Event.clock += seconds
        self.timer.queued()
        self.timer.end(self.now())

    def step(self, number, *spans, idle=0.0):
        begin = self.now()
        for seconds in spans:
            self.span(seconds, idle)
        self.timer.step_over(number, begin, self.now())

    def told(self):
        """(step, ms of work, ms of the period) of each step that is followed by another one."""
        self.timer.begin()
        self.timer.collect()
        self.assertEqual({event[0] for event in self.ring.events} - {event_kinds.DEVICE}, set())
        return [(event[3], round(event[2] * 1e-6), round(event[4] * 1e-6)) for event in self.ring.events]

    def test_a_step_is_reported_once_it_is_done(self):
        self.step(0, 0.125)
        Event.done = 0.25
        self.step(1, 0.25)
        self.assertEqual(self.told(), [])
        Event.done = True
        self.assertEqual(self.told(), [(1, 250, 250)])

    def test_the_first_step_has_none_before_it(self):
        self.step(0, 0.25)
        self.step(1, 0.5)
        self.assertEqual(self.told(), [(1, 500, 500)])

    def test_a_step_is_reported_once_it_is_over(self):
        self.step(0, 0.25)
        begin = self.now()
        self.span(0.25)
        self.assertEqual(self.told(), [])  # another optimiser may come
        Event.clock += 0.5
        self.timer.end(self.now())
        self.timer.step_over(7, begin, self.now())
        self.assertEqual(self.told(), [(7, 750, 750)])

    # -- between two steps --

    def test_a_device_that_is_done_idles_until_the_host_comes(self):
        for number in range(3):
            self.step(number, 0.25, idle=0.5)
        self.assertEqual(self.told(), [(1, 250, 750), (2, 250, 750)])

    def test_a_device_that_is_not_done_never_idles(self):
        """It computes averages of weights, and frozen networks on the next batch."""
        Event.done = 0.0
        for number in range(3):
            self.step(number, 0.25, idle=0.5)
        Event.done = True
        self.assertEqual(self.told(), [(1, 750, 750), (2, 750, 750)])

    def test_what_is_queued_before_the_host_waits_is_work_of_the_step(self):
        for number in range(2):
            self.step(number, 0.25)
            Event.clock += 0.125  # averages of weights
            for _ in range(2):  # the second wait finds nothing to wait for
                self.timer.wait_begins()
                self.timer.wait_ends(self.now())
                Event.clock += 0.25
                self.host += 0.25
        self.assertEqual(self.told(), [(1, 375, 875)])

    def test_what_the_device_does_after_the_host_came_is_work(self):
        self.step(0, 0.25)
        self.timer.wait_begins()
        self.timer.wait_ends(self.now())
        self.host += 0.125  # a loader; then pictures are changed on the device
        Event.clock += 0.125 + 0.5
        self.step(1, 0.25)
        self.assertEqual(self.told(), [(1, 750, 875)])

    def test_a_copy_that_the_host_waits_for_is_none(self):
        self.step(0, 0.25)
        self.timer.wait_begins()
        Event.clock += 0.5
        self.host += 0.5
        self.timer.copy_ends(self.now())
        Event.clock += 0.125  # pictures are changed
        self.step(1, 0.25)
        self.assertEqual(self.told(), [(1, 375, 875)])

    def test_a_validation_between_two_steps_is_none_of_theirs(self):
        self.step(0, 0.25)
        self.pauses += 1
        self.step(1, 0.25, idle=9)
        self.step(2, 0.25)
        self.assertEqual(self.told(), [(2, 250, 250)])

    # -- events --

    def test_events_are_used_again(self):
        for number in range(500):
            self.step(number, 0.001)
        self.assertEqual(Event.made, 4 * 64)
        self.assertEqual(self.timer.missed, 0)
        self.assertEqual([step for step, _, _ in self.told()], list(range(1, 500)))

    def test_a_device_far_behind_costs_reports_and_nothing_else(self):
        Event.done = 0.0
        for number in range(200):
            self.step(number, 0.001)
        self.assertEqual(self.timer.missed, 200 - 64)
        Event.done = True
        self.assertEqual(len(self.told()), 63)
        self.step(200, 0.001)
        self.step(201, 0.001)
        self.assertEqual([step for step, _, _ in self.told()][63:], [201])
        self.assertEqual(len(self.timer.free), 64 - 2)  # the open one, and the previous one

    def test_what_the_device_refuses_is_a_step_that_was_missed(self):
        self.step(0, 0.25)
        Event.refuses = True
        self.step(1, 0.25)
        self.step(2, 0.25)
        self.timer.begin()
        Event.refuses = False
        self.step(3, 0.25)
        self.step(4, 0.25)
        self.assertEqual([step for step, _, _ in self.told()], [2, 3, 4])

    def test_a_begin_on_a_stream_that_is_behind_is_waited_for(self):
        """The span's end may be over before its begin: they are on streams that have not been joined."""
        self.step(0, 0.25)
        Event.clock += 9
        self.timer.begin()
        Event.clock -= 8
        begin = self.now()
        self.timer.end(self.now())
        self.timer.step_over(1, begin, self.now())
        Event.done = 5.0
        self.assertEqual(self.told(), [])
        Event.done = True
        self.assertEqual([step for step, _, _ in self.told()], [1])

    def test_a_step_of_which_a_part_was_missed_is_not_reported(self):
        self.step(0, 0.25)
        begin = self.now()
        self.span(0.25)
        Event.capturing = True
        self.span(0.25)
        Event.capturing = False
        self.timer.step_over(1, begin, self.now())
        self.step(2, 0.5)  # the time before it is unknown
        self.step(3, 0.5)
        self.assertEqual(self.told(), [(3, 500, 500)])

    def test_a_span_without_an_end_is_dropped(self):
        self.step(0, 0.25)
        begin = self.now()
        self.timer.begin()
        self.timer.drop()
        Event.clock += 100
        self.timer.end(self.now())  # of a step that is observed in full again
        self.timer.step_over(1, begin, self.now())
        self.step(2, 0.5)
        self.step(3, 0.5)
        self.assertEqual(self.told(), [(3, 500, 500)])

    def test_the_last_step_is_told_at_the_end(self):
        self.step(0, 0.25)
        self.step(1, 0.25)
        self.timer.finish()
        self.assertEqual([event[3] for event in self.ring.events], [1])

    def test_nothing_is_recorded_while_a_graph_is_captured(self):
        Event.capturing = True
        for number in range(3):
            self.step(number, 1.0)
            self.timer.wait_begins()
            self.timer.copy_ends(self.now())
        Event.capturing = False
        self.assertEqual(self.told(), [])

    def test_nothing_is_asked_while_a_graph_is_captured(self):
        self.step(0, 1.0)
        self.step(1, 1.0)  # waits for the next query
        Event.capturing = True
        self.step(2, 1.0)
        Event.capturing = False
        self.assertEqual([step for step, _, _ in self.told()], [1])

    # -- whether the device keeps up --

    def looked_at(self):
        return self.timer.asked, self.timer.kept_up

    def test_a_device_that_keeps_up_is_counted(self):
        self.step(0, 0.1)
        Event.done = 0.0
        self.step(1, 0.1)
        self.assertEqual(self.looked_at(), (2, 1))

    def test_where_the_host_has_waited_keeping_up_means_nothing(self):
        self.timer.begin()
        self.waits += 1
        self.timer.queued()
        self.timer.end(self.now())
        self.timer.begin()
        self.timer.may_wait(())  # before the backward pass, in a closure
        self.timer.queued()
        self.timer.end(self.now())
        self.assertEqual(self.looked_at(), (0, 0))

    def test_a_scaler_is_looked_at_before_it_reads(self):
        for done, expected in ((0.0, (1, 0)), (True, (2, 1))):
            self.timer.begin()
            Event.clock += 0.1
            self.timer.queued()
            Event.done = done
            self.timer.may_wait(())
            Event.done = True  # the read has waited
            self.timer.may_wait(())
            self.timer.end(self.now())
            self.assertEqual(self.looked_at(), expected)

    def test_a_closure_is_looked_at_after_its_last_backward_pass(self):
        self.timer.queued()  # the optimiser begins, and nothing of the step is queued yet
        self.timer.begin()
        self.timer.queued()
        Event.clock += 0.1
        self.timer.queued()
        Event.done = 0.05
        self.timer.end(self.now())
        self.assertEqual(self.looked_at(), (1, 0))


if __name__ == "__main__":
    unittest.main()
