"""Which calls the loop counts as validation, with the fakes of test_loop."""

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
        self.assertLess(max(self.program.ring.part("input_ns")), 100)

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

    def validate_with_gradients(self, held_out, batches=3, to_its_end=True):
        for _ in range(batches):
            self.program.fetch(held_out, ns=100, samples=50, place=2)
            self.program.forward(self.model, samples=50)
        if to_its_end:
            self.program.fetch(held_out, got=False, place=2)

    def trained(self):
        """Steps with their samples, and the samples of each validation."""
        self.program.loop.finish()
        return (
            [step.samples for step in self.program.steps()],
            [span[4] for span in self.program.ring.of(event_kinds.VALIDATE)],
        )

    def test_batches_whose_gradients_nobody_takes_are_validation(self):
        for to_its_end in (True, False):
            with self.subTest(to_its_end=to_its_end):
                self.setUp()
                held_out = test_loop.Loader()
                for _ in range(3):
                    for _ in range(2):
                        self.iteration()
                    self.program.fetch(self.loader, got=False)
                    self.validate_with_gradients(held_out, to_its_end=to_its_end)
                self.iteration()
                self.assertEqual(self.trained(), ([4] * 7, [150] * 3))
                self.assertEqual((held_out.use, self.loader.use), ("validate", "train"))

    def test_validation_with_gradients_before_and_within_an_epoch(self):
        held_out = test_loop.Loader()
        self.validate_with_gradients(held_out)
        for _ in range(4):
            self.program.fetch(self.loader, place=1)
            self.validate_with_gradients(held_out)
            self.program.forward(self.model)
            self.program.backward()
            self.program.step(self.optimizer)
        samples, validations = self.trained()
        self.assertEqual((samples, sum(validations)), ([4] * 4, 5 * 150))

    def test_a_second_loader_of_the_step_is_no_validation(self):
        unlabelled = test_loop.Loader()
        for _ in range(5):
            self.program.fetch(unlabelled, place=2)
            self.program.forward(self.model)
            self.program.fetch(self.loader, place=1)
            self.program.forward(self.model)
            self.program.backward()
            self.program.step(self.optimizer)
        self.assertEqual((len(self.program.steps()), unlabelled.use), (4, "train"))
        self.assertEqual(self.trained()[1], [])

    def test_losses_that_are_summed_over_a_whole_loader_are_training(self):
        for _ in range(3):
            for _ in range(4):
                self.program.fetch(self.loader, place=1)
                self.program.forward(self.model)
            self.program.fetch(self.loader, got=False, place=1)
            self.program.backward()
            self.program.step(self.optimizer)
        self.assertEqual(self.trained(), ([16] * 3, []))

    def test_a_loader_that_is_trained_on_later_is_for_training(self):
        other = test_loop.Loader()
        self.iteration()
        self.validate_with_gradients(other)
        for _ in range(3):
            self.program.fetch(other, samples=8, place=3)
            self.program.forward(self.model, samples=8)
            self.program.backward()
            self.program.step(self.optimizer)
        self.assertEqual(self.trained(), ([4, 8, 8, 8], [150]))

    def test_a_batch_that_fails_is_not_trained(self):
        for how in ("forward", "between", "backward"):
            with self.subTest(how):
                self.setUp()
                self.iteration()
                large = test_loop.Loader()
                self.program.fetch(large, samples=64, place=1)
                if how != "between":
                    self.program.forward(self.model, samples=64)
                self.program.loop.drop_batch()
                for _ in range(2):
                    self.program.fetch(self.loader, samples=32, place=1)
                    self.program.forward(self.model, samples=32)
                    self.program.backward()
                    self.program.step(self.optimizer)
                self.assertEqual(self.trained()[0], [4, 32, 32])

    def test_batches_that_were_fetched_ahead_for_validation_are_not_trained(self):
        held_out = test_loop.Loader()
        self.iteration()
        self.program.fetch(self.loader, got=False)
        self.model.training = False
        for _ in range(2):
            self.program.fetch(held_out, samples=50)
        for _ in range(2):
            self.program.forward(self.model, grad=False, samples=50)
        self.program.fetch(held_out, got=False)
        self.model.training = True
        self.program.fetch(self.loader)
        for _ in range(2):  # two passes over one batch
            self.program.forward(self.model)
            self.program.backward()
        self.program.step(self.optimizer)
        self.assertEqual(self.trained(), ([4, 4], [100]))

    def test_a_batch_without_a_backward_pass_is_not_trained(self):
        for _ in range(3):
            self.iteration()
        self.program.fetch(self.loader, samples=6)
        self.program.forward(self.model, samples=6)  # its loss is not finite
        self.program.fetch(self.loader, samples=6)
        self.program.forward(self.model, samples=6)
        self.program.backward()
        self.program.step(self.optimizer)
        self.iteration()
        self.assertEqual(self.trained()[0], [4, 4, 4, 6, 4])

    def test_a_loop_that_begins_again_leaves_its_batch(self):
        for again, samples in ((True, [32, 32]), (False, [64, 64])):
            with self.subTest(again=again):
                self.setUp()
                first = test_loop.Loader()
                for _ in range(2):
                    if not again or not self.program.loop.optimizer_steps:
                        self.program.fetch(first, samples=64, place=1)
                        self.loader.begun_ns = self.program.t + 1 if again else 0
                    self.program.fetch(self.loader, samples=32, place=1)  # the same line, with zip
                    self.program.forward(self.model, samples=32)
                    self.program.backward()
                    self.program.step(self.optimizer)
                self.assertEqual(self.trained()[0], samples)

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

    def test_passes_with_fewer_samples_than_training_play_an_environment(self):
        for samples, spans in ((2, 0), (50, 2)):
            with self.subTest(samples=samples):
                self.setUp()
                for _ in range(3):
                    for _ in range(20):
                        self.program.forward(self.model, grad=False, samples=samples)
                        self.program.idle(10)
                    for _ in range(4):
                        self.iteration()
                self.program.loop.finish()
                # Before the first step, both are start-up.
                self.assertEqual(len(self.program.ring.of(event_kinds.VALIDATE)), spans)
                self.assertEqual([step.samples for step in self.program.steps()], [4] * 12)
                self.assertEqual(self.program.loop.preview_samples, 0 if spans else samples)

    def test_an_agent_that_plays_in_evaluation_mode_before_each_step_is_no_validation(self):
        """Few passes, passes without other work between them, those after several steps, and those of a
        program that trains on batches of a loader may be one."""
        for name, passes, idle, steps, loader, spans in (
            ("plays", 20, 30, 1, False, 0),
            ("few", 3, 30, 1, False, 3),
            ("no other work", 20, 5, 1, False, 3),
            ("after several steps", 20, 30, 4, False, 3),
            ("with a loader", 20, 30, 1, True, 3),
        ):
            with self.subTest(name):
                self.setUp()
                for _ in range(4):
                    self.model.training = False
                    for _ in range(passes):
                        self.program.forward(self.model, grad=False, samples=2)
                        self.program.idle(idle)
                    self.model.training = True
                    for _ in range(steps):
                        if loader:
                            self.program.fetch(self.loader)
                        self.program.forward(self.model)
                        self.program.backward()
                        self.program.step(self.optimizer)
                self.program.loop.finish()
                found = self.program.ring.of(event_kinds.VALIDATE)
                self.assertEqual(len([step for _, _, _, step, *_ in found if step]), spans)
                self.assertEqual([step.samples for step in self.program.steps()], [4] * 4 * steps)
                if not spans:
                    self.assertEqual(found, [], "before the first step it is start-up")
                    longest = max(step.duration_ns for step in self.program.steps())
                    self.assertGreater(longest, passes * idle)

    def test_rare_validation_of_an_agent_that_plays_in_training_mode_is_validation(self):
        for step in range(30):
            for _ in range(10):
                self.program.forward(self.model, grad=False, samples=1)
                self.program.idle(30)
            if step % 10 == 9:
                self.model.training = False
                for _ in range(10):
                    self.program.forward(self.model, grad=False, samples=1)
                    self.program.idle(30)
                self.model.training = True
            self.program.forward(self.model)
            self.program.backward()
            self.program.step(self.optimizer)
        self.program.loop.finish()
        self.assertEqual(len(self.program.ring.of(event_kinds.VALIDATE)), 3)

    def test_a_target_network_beside_an_action_that_is_sometimes_chosen_is_no_validation(self):
        target = test_loop.Module(training=True)
        for step in range(12):
            if step % 4 == 0:  # else it is drawn
                self.program.forward(self.model, grad=False, samples=1)
            self.program.idle(10)
            self.program.forward(target, grad=False)
            self.program.forward(self.model)
            self.program.backward()
            self.program.step(self.optimizer)
        self.program.loop.finish()
        self.assertEqual(self.program.ring.of(event_kinds.VALIDATE), [])
        self.assertEqual([step.samples for step in self.program.steps()], [4] * 12)

    def test_steps_are_not_only_marked_while_a_validation_is_open(self):
        loop, ended = self.program.loop, []

        class Marking:
            asks = staticmethod(bool)

            def end(self, loop):
                loop.marking = None
                ended.append(loop.steps)

        for _ in range(3):
            self.iteration()
        loop.own_cost.next_step = 0
        loop.turn = lambda step, t: setattr(loop, "marking", Marking())
        self.program.forward(self.model, grad=False, samples=50)
        self.assertEqual((ended, loop.marking), ([3], None))
        self.assertIsNotNone(loop.validation)

    def test_batches_read_before_the_first_step_and_not_trained(self):
        for skipped, to_the_end in ((40, False), (3, False), (40, True)):
            with self.subTest(skipped=skipped, to_the_end=to_the_end):
                self.setUp()
                for _ in range(skipped):
                    self.program.fetch(self.loader, ns=100, place=1)
                if to_the_end:
                    self.program.fetch(self.loader, got=False, place=1)
                for _ in range(3):
                    self.iteration()
                self.program.loop.finish()
                leaves_out = skipped == 40 and not to_the_end
                found = self.program.loop.first_fetches.skipped
                self.assertEqual(found[0] if found else 0, 40 if leaves_out else 0)
                first = self.program.steps()[0]
                self.assertEqual(first.duration_ns < 1000, leaves_out or skipped == 3)

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
        self.assertEqual([step.samples for step in self.program.steps()], [4] * 4)

    def test_the_first_step_keeps_the_batches_that_looked_like_validation(self):
        for mode in ("a frozen teacher goes first", "the model trains in evaluation mode"):
            with self.subTest(mode):
                self.setUp()
                teacher = test_loop.Module(training=False)
                for _ in range(2):
                    for _ in range(2):  # micro-batches
                        self.program.fetch(self.loader, samples=6)  # a forward pass sees 4, as of a sequence
                        if mode.startswith("a frozen"):
                            self.program.forward(teacher, grad=False)
                        else:
                            self.model.training = False
                        self.program.forward(self.model)
                        self.program.backward()
                        self.assertEqual(self.loader.use, "train")
                    self.program.step(self.optimizer)
                self.program.loop.finish()
                self.assertEqual(self.program.ring.of(event_kinds.VALIDATE), [])
                steps = self.program.steps()
                self.assertEqual([(step.samples, step.micro_batches) for step in steps], [(12, 2)] * 2)
                self.assertEqual(steps[0].t_ns + steps[0].duration_ns, steps[1].t_ns)
                self.assertEqual(steps[0].duration_ns, steps[1].duration_ns)

    def test_a_model_that_trains_in_evaluation_mode(self):
        self.model.training = False
        for _ in range(5):
            self.iteration()
        self.program.loop.finish()
        self.assertEqual(len(self.program.steps()), 5)
        self.assertEqual(self.program.ring.of(event_kinds.VALIDATE), [])
        self.assertEqual(self.loader.use, "train")

    def evaluate(self, batches=3, training=False, ahead=False):
        """A pass over the training loader without gradients, to its end."""
        self.model.training = training
        for number in range(batches):
            if not (ahead and number):
                self.program.fetch(self.loader)
            if ahead and number + 1 < batches:
                self.program.fetch(self.loader)
            self.program.forward(self.model, grad=False)
        self.program.fetch(self.loader, got=False)
        self.model.training = True

    def test_evaluating_on_the_training_loader(self):
        for training, ahead in ((False, False), (True, False), (False, True)):
            with self.subTest(training=training, ahead=ahead):
                self.setUp()
                for _ in range(2):
                    for _ in range(3):
                        self.iteration()
                    self.program.fetch(self.loader, got=False)
                    self.evaluate(training=training, ahead=ahead)
                self.iteration()
                self.assertEqual(self.trained(), ([4] * 7, [12, 12]))
                # Training goes on at once, and the pass is no part of a step.
                self.assertLess(max(step.duration_ns for step in self.program.steps()), 100)
                self.assertEqual(set(self.program.ring.part("input_ns")) - {10, 20}, set())

    def test_passes_one_after_another_are_several_validations_after_one_step(self):
        held_out, loop = test_loop.Loader(), self.program.loop
        for _ in range(2):
            for _ in range(3):
                self.iteration()
            self.program.fetch(self.loader, got=False)
            for loader in (self.loader, held_out):
                loop.pass_begins(self.program.t)
                self.model.training = False
                for _ in range(2):
                    self.program.fetch(loader)
                    self.program.forward(self.model, grad=False)
                self.program.fetch(loader, got=False)
                self.model.training = True
            loop.pass_begins(self.program.t)
        self.iteration()
        self.assertEqual(self.trained(), ([4] * 7, [8] * 4))
        self.assertEqual((loop.validations, loop.validated_steps), (4, 2))

    def test_evaluating_on_the_training_loader_before_training(self):
        self.evaluate()
        for _ in range(3):
            self.iteration()
        self.assertEqual(self.trained(), ([4] * 3, [12]))
        self.assertLess(self.program.steps()[0].duration_ns, 100)

    def test_a_batch_that_is_evaluated_and_then_trained_is_of_its_step(self):
        self.iteration()
        for chosen in (True, True, False, True):
            self.program.fetch(self.loader)
            self.model.training = False
            self.program.forward(self.model, grad=False)
            self.model.training = True
            if chosen:  # others are not worth training on
                self.program.forward(self.model)
                self.program.backward()
                self.program.step(self.optimizer)
        self.assertEqual(self.trained(), ([4] * 4, [4]))
        steps = self.program.steps()
        self.assertEqual([step.duration_ns for step in steps[1:]], [85] * 3)
        self.assertEqual([step.input_ns for step in steps[1:]], [10] * 3)
        self.assertEqual([step.forward_ns for step in steps[1:]], [40] * 3)

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
        self.assertEqual(
            [(step.samples, step.micro_batches) for step in self.program.steps()], [(4, 1), (4, 1), (4, 1)]
        )

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
        self.assertEqual(len(self.program.ring.part("input_ns")), 6)
        self.assertEqual(len(self.program.ring.of(event_kinds.VALIDATE)), 2)


if __name__ == "__main__":
    unittest.main()
