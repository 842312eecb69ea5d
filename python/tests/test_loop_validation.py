"""Which calls the loop takes for validation, by the fakes of test_loop."""

import unittest

import test_loop
from test_loop import event_kinds


class ValidationTest(unittest.TestCase):
    setUp, iteration = test_loop.LoopTest.setUp, test_loop.LoopTest.iteration

    def test_validation_by_a_loader_of_its_own(self):
        held_out = test_loop.Loader()
        for _ in range(2):
            for _ in range(3):
                self.iteration()
            self.program.fetch(self.loader, got=False)
            self.model.training = False
            for _ in range(2):
                self.program.fetch(held_out, ns=100, samples=50)
                self.program.forward(self.model, grad=False, samples=50)
            self.program.fetch(held_out, got=False)
            self.model.training = True
        self.program.fetch(self.loader)
        self.program.loop.finish()
        self.assertEqual(held_out.use, "validate")
        spans = self.program.ring.of(event_kinds.VALIDATE)
        self.assertEqual([span[4] for span in spans], [100, 100])
        self.assertEqual([span[2] for span in spans], [250, 250])
        self.assertEqual(len(self.program.steps()), 6)
        self.assertLess(max(event[2] for event in self.program.ring.of(event_kinds.INPUT)), 100)

    def test_validation_without_a_loader(self):
        for _ in range(2):
            for _ in range(3):
                self.program.forward(self.model)
                self.program.backward()
                self.program.step(self.optimizer)
            self.model.training = False
            for _ in range(2):
                self.program.forward(self.model, grad=False, samples=50)
            self.model.training = True
        self.program.forward(self.model)
        self.program.loop.finish()
        self.assertEqual([span[4] for span in self.program.ring.of(event_kinds.VALIDATE)], [100, 100])
        self.assertEqual(len(self.program.steps()), 6)

    def test_text_that_is_made_word_by_word_is_no_validation(self):
        for samples, spans in ((1, 0), (100, 1)):
            self.setUp()
            for _ in range(3):
                self.iteration()
            for _ in range(5):
                self.program.forward(self.model, grad=False, samples=samples)
                self.program.idle(3)
            self.program.loop.finish()
            self.assertEqual(len(self.program.ring.of(event_kinds.VALIDATE)), spans)
            self.assertEqual(len(self.program.steps()), 3)

    def test_a_frozen_teacher_is_no_validation(self):
        teacher = test_loop.Module(training=False)
        for _ in range(4):
            self.program.fetch(self.loader)
            self.program.forward(teacher, grad=False)
            self.program.forward(self.model)
            self.program.backward()
            self.program.step(self.optimizer)
        self.program.loop.finish()
        self.assertEqual(self.loader.use, "train")
        self.assertEqual(self.program.ring.of(event_kinds.VALIDATE), [])
        self.assertEqual([step[4] for step in self.program.steps()], [4] * 4)

    def test_a_model_that_trains_in_evaluation_mode(self):
        self.model.training = False
        for _ in range(5):
            self.iteration()
        self.program.loop.finish()
        self.assertEqual(len(self.program.steps()), 5)
        self.assertEqual(self.program.ring.of(event_kinds.VALIDATE), [])
        self.assertEqual(self.loader.use, "train")

    def test_evaluating_on_the_training_loader(self):
        for _ in range(3):
            self.iteration()
        self.model.training = False
        for _ in range(3):
            self.program.fetch(self.loader)
            self.program.forward(self.model, grad=False)
        self.model.training = True
        for _ in range(2):
            self.iteration()
        self.program.loop.finish()
        self.assertEqual(len(self.program.steps()), 5)
        self.assertGreaterEqual(len(self.program.ring.of(event_kinds.VALIDATE)), 1)

    def test_a_closure_is_part_of_its_optimiser_step(self):
        loop = self.program.loop
        for _ in range(3):
            loop.optimizer_begins(self.optimizer)
            loop.in_optimizer += 1
            for _ in range(4):
                self.program.forward(self.model)
                self.program.backward()
            loop.in_optimizer -= 1
            self.program.step(self.optimizer)
        loop.finish()
        self.assertEqual([(step[4], step[5]) for step in self.program.steps()], [(4, 1), (4, 1), (4, 1)])

    def test_a_closure_after_a_fetch_shows_what_its_loader_is_for(self):
        loop, held_out = self.program.loop, test_loop.Loader()
        for _ in range(2):
            for _ in range(3):
                self.program.fetch(self.loader)
                loop.optimizer_begins(self.optimizer)
                loop.in_optimizer += 1
                self.program.forward(self.model)
                self.program.backward()
                loop.in_optimizer -= 1
                self.program.step(self.optimizer)
            self.model.training = False
            self.program.fetch(held_out)
            self.program.forward(self.model, grad=False)
            self.model.training = True
        self.program.fetch(self.loader)
        loop.finish()
        self.assertEqual((self.loader.use, held_out.use), ("train", "validate"))
        self.assertEqual(len(self.program.ring.of(event_kinds.INPUT)), 6)
        self.assertEqual(len(self.program.ring.of(event_kinds.VALIDATE)), 2)


if __name__ == "__main__":
    unittest.main()
