"""How the loop interprets a program's calls, without torch: a script of calls with a simulated clock."""

import os
import random
import struct
import sys
import unittest

import event_types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.host import event_kinds, probe  # noqa: E402
from _unidle_shim.loop import loop as looping  # noqa: E402
from _unidle_shim.loop.step_parts import Parts  # noqa: E402


class FakeRing(probe.Writer):
    def __init__(self):
        self.view, self.events, self.steps = bytearray(128), [], []

    def room(self):
        return 0

    def publish(self):
        if event_types.is_step(self.view):
            self.steps.append(event_types.step_of(self.view))
            return
        t_ns, duration_ns, step, a, b, value, kind, _, reserved = struct.unpack_from("=QQQQQdIIQ", self.view)
        event_types.check(kind, a, b, value, reserved)
        self.events.append((kind, t_ns, duration_ns, step, a, b, value))

    def of(self, kind):
        return [event for event in self.events if event[0] == kind]

    def part(self, name):
        """For each step that has it."""
        return [getattr(step, name) for step in self.steps if getattr(step, name) is not None]


class Module:
    def __init__(self, training=True):
        self.training = training


class Loader:
    def __init__(self, use=None):
        self.use = use
        self.proven = self.with_gradients = False
        self.begun_ns = 0


class Optimizer:
    pass


class Program:
    """Calls of a training program, each with the given duration."""

    def __init__(self, max_steps=0, short_cuts=True):
        self.short_cuts = short_cuts
        self.ring = FakeRing()
        self.loop = looping.Loop(self.ring, 1, 0, max_steps)
        self.t = 1000

    def idle(self, ns):
        self.t += ns

    def fetch(self, loader, ns=10, samples=4, got=True, place=None):
        t0 = self.t
        self.loop.fetch_begins(loader, t0, place)
        self.t += ns
        self.loop.total += ns
        self.loop.fetch_ends(loader, t0, self.t, ns, samples, got)

    def forward(self, module, ns=20, grad=True, samples=4, wait=0):
        kind = self.short_cuts and grad and self.loop.forward_goes_on(module)
        if not kind:
            kind = self.loop.forward_begins(module, self.t, grad, samples)
        self.t += ns
        self.loop.total += ns
        self.loop.forward_ends(kind, self.t, ns, samples)

    def backward(self, ns=30, loss=1.0):
        self.of_loss = self.loop.backward_begins(self.t)
        t0 = self.t
        self.t += ns
        self.loop.total += ns
        self.loop.backward_ends(t0, self.t, ns, loss)

    def step(self, optimizer, ns=5):
        self.loop.optimizer_begins(optimizer)
        t0 = self.t
        self.t += ns
        self.loop.total += ns
        self.loop.optimizer_ends(optimizer, t0, self.t, ns)

    def steps(self):
        return self.ring.steps


class LoopTest(unittest.TestCase):
    def setUp(self):
        self.program = Program()
        self.model, self.optimizer, self.loader = Module(), Optimizer(), Loader()

    def iteration(self, optimizer=None):
        self.program.fetch(self.loader)
        self.program.forward(self.model)
        self.program.backward()
        self.program.step(optimizer or self.optimizer)

    def test_steps_lie_end_to_end(self):
        for _ in range(5):
            self.iteration()
            self.program.idle(7)
        self.program.loop.finish()
        steps = self.program.steps()
        self.assertEqual(len(steps), 5)
        for one, following in zip(steps, steps[1:]):
            self.assertEqual(one.t_ns + one.duration_ns, following.t_ns)
        self.assertEqual([step.duration_ns for step in steps], [72, 72, 72, 72, 65])
        self.assertEqual([step.samples for step in steps], [4] * 5)
        self.assertEqual(self.program.ring.part("input_ns"), [10] * 5)
        self.assertEqual(self.program.ring.part("forward_ns"), [20] * 5)
        self.assertEqual(self.loader.use, "train")

    def test_the_last_step_is_not_lost(self):
        self.iteration()
        self.assertEqual(self.program.steps(), [])
        self.program.loop.finish()
        self.assertEqual(len(self.program.steps()), 1)

    def test_a_step_that_was_seen_in_part_has_no_loss(self):
        program = self.program
        for step in range(3):
            for _ in range(2):
                program.fetch(self.loader)
                program.forward(self.model)
                program.backward(loss=0.5)
                program.loop.parts.incomplete = step == 1
            program.step(self.optimizer)
        program.loop.finish()
        self.assertEqual(
            [(step.step, step.loss) for step in program.steps() if step.loss is not None],
            [(0, 1.0), (2, 1.0)],
        )

    def test_micro_batches_are_of_one_step(self):
        for _ in range(3):
            for _ in range(4):
                self.program.fetch(self.loader)
                self.program.forward(self.model)
                self.program.backward(loss=0.25)
            self.program.step(self.optimizer)
        self.program.loop.finish()
        self.assertEqual([(step.samples, step.micro_batches) for step in self.program.steps()], [(16, 4)] * 3)
        self.assertEqual(self.program.ring.part("loss"), [1.0] * 3)

    def test_batches_fetched_together_are_of_one_step(self):
        """As the Trainer of transformers does for its micro-batches."""
        for _ in range(3):
            for _ in range(4):
                self.program.fetch(self.loader)
            for _ in range(4):
                self.program.forward(self.model)
                self.program.backward(loss=0.25)
            self.program.step(self.optimizer)
        self.program.loop.finish()
        self.assertEqual([(step.samples, step.micro_batches) for step in self.program.steps()], [(16, 4)] * 3)

    def test_a_batch_fetched_ahead_is_of_the_step_that_uses_it(self):
        """As accelerate does, to know which batch is the last one."""
        self.program.fetch(self.loader)
        for index in range(5):
            if index < 4:
                self.program.fetch(self.loader, samples=4 if index < 3 else 2)
            self.program.forward(self.model, samples=4 if index < 4 else 2)
            self.program.backward()
            self.program.step(self.optimizer)
        self.program.loop.finish()
        self.assertEqual([step.micro_batches for step in self.program.steps()], [1] * 5)
        self.assertEqual(sum(step.samples for step in self.program.steps()), 18)

    def test_two_optimisers_make_one_step(self):
        generator, other = Module(), Optimizer()
        for loader in (self.loader, None):
            program = self.program = Program()
            for _ in range(4):
                if loader:
                    program.fetch(loader)
                for module, optimizer in ((self.model, self.optimizer), (generator, other)):
                    program.forward(module)
                    program.backward()
                    program.step(optimizer)
            program.loop.finish()
            self.assertEqual([(step.samples, step.micro_batches) for step in program.steps()], [(4, 1)] * 4)
            self.assertEqual(program.ring.part("optimizer_ns"), [10] * 4)

    def two_batches(self, places, loaders, optimizers, micro=1):
        """Four iterations, in which each of two optimisers has its own batches."""
        program = self.program = Program()
        modules = Module(), Module()
        for _ in range(4):
            for which in (0, 1):
                for _ in range(micro):
                    program.fetch(loaders[which], place=places[which])
                    program.forward(modules[which])
                    program.backward()
                program.step(optimizers[which])
        program.loop.finish()
        return [(step.samples, step.micro_batches) for step in program.steps()]

    def test_a_batch_for_the_second_optimiser_is_of_the_same_step(self):
        two, one = (Optimizer(), Optimizer()), (self.optimizer, self.optimizer)
        same, other = (self.loader, self.loader), (Loader(), Loader())
        self.assertEqual(self.two_batches("ab", same, two), [(8, 1)] * 4)
        self.assertEqual(self.two_batches("ab", other, two), [(8, 1)] * 4)
        self.assertEqual(self.two_batches("ab", same, two, micro=2), [(16, 2)] * 4)
        # Fetched at one place, as in a loop with alternating steps, or for one optimiser, each is a step.
        self.assertEqual(self.two_batches("aa", same, two), [(4, 1)] * 8)
        self.assertEqual(self.two_batches("ab", same, one), [(4, 1)] * 8)

    def test_without_a_loader_the_forward_pass_begins_a_step(self):
        for _ in range(4):
            self.program.forward(self.model, samples=8)
            self.program.backward()
            self.program.step(self.optimizer)
            self.program.idle(11)
        self.program.loop.finish()
        self.assertEqual([step.duration_ns for step in self.program.steps()], [66, 66, 66, 55])
        self.assertEqual([step.samples for step in self.program.steps()], [8] * 4)
        self.assertEqual(self.program.ring.part("input_ns"), [])

    def test_time_before_the_forward_pass_is_input_only_when_the_lines_say_so(self):
        self.program.loop.gap_is_input[looping.AFTER_STEP] = 1.0
        for _ in range(3):
            self.program.forward(self.model)
            self.program.backward()
            self.program.step(self.optimizer)
            self.program.idle(11)
        self.program.loop.finish()
        self.assertEqual(self.program.ring.part("input_ns"), [11, 11])

    def test_time_within_a_step_is_input_where_the_lines_say_so(self):
        self.program.loop.gap_is_input[looping.AFTER_FORWARD] = 1.0
        self.program.loop.gap_is_input[looping.AFTER_BACKWARD] = 0.5
        for _ in range(3):
            for _ in range(2):
                self.program.forward(self.model)
                self.program.idle(11)
                self.program.backward()
                self.program.idle(4)
            self.program.step(self.optimizer)
        self.program.loop.finish()
        self.assertEqual(self.program.ring.part("input_ns"), [24, 24, 24])
        self.assertEqual(
            [(step.duration_ns, step.micro_batches) for step in self.program.steps()], [(135, 2)] * 3
        )

    def test_a_loss_that_is_no_module_is_part_of_the_forward_pass(self):
        program = self.program
        for share in (0.0, 0.5):
            program.loop.gap_is_loss = share
            for _ in range(2):
                program.forward(self.model)
                program.idle(10)
                program.backward()
                self.assertEqual(program.of_loss, 10 * share)
                program.idle(4)  # a metric
                program.step(self.optimizer)
        program.loop.finish()
        without, _, with_loss, _ = program.ring.part("forward_ns")
        self.assertEqual(with_loss - without, 5)
        self.assertEqual({step.duration_ns for step in program.steps()}, {program.steps()[0].duration_ns})

    def test_what_is_timed_within_a_loss_is_counted_once(self):
        program = self.program
        program.loop.gap_is_loss = 1.0
        for _ in range(2):
            program.forward(self.model)
            program.idle(10)
            program.loop.parts.last = program.t + 20  # a line of a log, which is timed by itself
            program.loop.total += 20
            program.idle(20)
            program.idle(10)
            program.backward()
            program.step(self.optimizer)
        program.loop.finish()
        alone = 20  # see Program.forward
        self.assertEqual(program.ring.part("forward_ns"), [alone + 20] * 2)

    def test_input_before_a_loss_is_counted_once(self):
        program = self.program
        program.loop.gap_is_input[looping.AFTER_FORWARD] = 0.75
        program.loop.gap_is_loss = 0.25
        for _ in range(2):
            program.forward(self.model)
            program.idle(8)
            program.backward()
            program.step(self.optimizer)
        program.loop.finish()
        self.assertEqual(program.ring.part("input_ns"), [6, 6])

    def test_time_within_a_step_is_input_where_arrays_become_tensors(self):
        program = self.program
        for _ in range(4):
            for _ in range(2):
                program.forward(self.model)
                program.loop.assembled = True  # the next batch, as in nanoGPT
                program.idle(8)
                program.backward()
                program.idle(3)
            program.idle(5)
            program.loop.assembled = True
            program.step(self.optimizer)
            program.idle(6)
        program.loop.finish()
        self.assertEqual(program.ring.part("input_ns"), [16] * 4)

    def test_arrays_that_answer_a_forward_pass_are_no_batch(self):
        program = self.program
        for _ in range(4):
            for _ in range(3):
                program.forward(self.model)
                program.idle(8)  # the environment's response to the action
                program.loop.assembled = True
            program.forward(self.model)
            program.backward()
            program.step(self.optimizer)
        program.loop.finish()
        self.assertEqual(program.ring.part("input_ns"), [])

    def test_lines_that_were_seen_count_more_than_arrays(self):
        program = self.program
        for share in (0.0, 0.75):
            program.loop.gap_is_input[looping.AFTER_FORWARD] = share
            for _ in range(2):
                program.forward(self.model)
                program.loop.assembled = True  # targets, and then a costly loss
                program.idle(8)
                program.backward()
                program.step(self.optimizer)
        program.loop.finish()
        self.assertEqual(program.ring.part("input_ns"), [6, 6])

    def test_parameters_that_are_changed_by_hand(self):
        for _ in range(4):
            self.program.forward(self.model)
            self.program.backward()
            self.program.loop.updates_by_hand(self.program.t)
            self.program.idle(7)
        self.program.loop.finish()
        self.assertEqual(
            [(step.duration_ns, step.micro_batches) for step in self.program.steps()],
            [(57, 1)] * 3 + [(50, 1)],
        )
        self.assertEqual(self.program.ring.part("optimizer_ns"), [])

    def test_an_optimiser_ends_changes_by_hand(self):
        for _ in range(4):
            for _ in range(2):
                self.program.forward(self.model)
                self.program.backward()
                if self.program.loop.by_hand:  # it was made before observation began
                    self.program.loop.updates_by_hand(self.program.t)
            self.program.step(self.optimizer)
        self.program.loop.finish()
        self.assertEqual([step.micro_batches for step in self.program.steps()][-3:], [2] * 3)

    def test_bare_tensors_make_steps_too(self):
        for _ in range(4):
            self.program.backward()
            self.program.step(self.optimizer)
        self.program.loop.finish()
        self.assertEqual(
            [(step.duration_ns, step.micro_batches) for step in self.program.steps()], [(35, 1)] * 4
        )

    def test_it_stops_after_the_asked_steps(self):
        program = self.program = Program(max_steps=3)
        with self.assertRaises(SystemExit) as stopped:
            for _ in range(10):
                self.iteration()
        self.assertEqual(stopped.exception.code, 0)
        self.assertEqual(len(program.steps()), 3)

    def test_startup_ends_where_the_first_step_begins(self):
        self.iteration()
        self.program.loop.finish()
        self.assertEqual(self.program.ring.of(event_kinds.STARTUP)[0][1:3], (0, 1000))

    def test_the_short_cut_of_most_steps_comes_to_the_same(self):
        for seed in range(300):
            draw, where = random.Random(seed), random.Random("places %d" % seed)
            both = [Program(), Program(short_cuts=False)]
            models, optimizers = [Module(), Module(), Module(training=False)], [Optimizer(), Optimizer()]
            loaders = [[Loader(), Loader("train"), Loader("validate")] for _ in both]
            for _ in range(200):
                call = draw.choice(
                    ("fetch", "fetch", "forward", "forward", "backward", "step", "step", "idle", "switch")
                )
                which, usual, ns = draw.randrange(3), draw.random() < 0.8, draw.randrange(1, 50)
                place = where.choice((None, "a", "a", "b"))
                if call == "switch":
                    models[which].training = not models[which].training
                for program, mine in zip(both, loaders):
                    if call == "fetch":
                        program.fetch(mine[which], ns, got=usual, place=place)
                    elif call == "forward":
                        program.forward(models[which], ns, grad=usual)
                    elif call == "backward":
                        program.backward(ns)
                    elif call == "step":
                        program.step(optimizers[which % 2], ns)
                    elif call == "idle":
                        program.idle(ns)
            for program in both:
                program.loop.finish()
            self.assertEqual(*(program.ring.events for program in both), "seed %d" % seed)


class PartsTest(unittest.TestCase):
    def test_a_dropped_batch_takes_its_passes_along(self):
        parts = Parts(0)
        parts.incomplete = True  # the batch was fetched, and trained, while steps were only marked
        parts.take(8)
        parts.forwards = parts.backwards = 1
        parts.drop()
        self.assertEqual((parts.fetches, parts.samples), (0, 0))
        parts.backwards += 2  # the program tries again, with halves of the batch
        parts.optimizers = (1,)
        self.assertEqual(parts.micro_batches(), 2)


if __name__ == "__main__":
    unittest.main()
