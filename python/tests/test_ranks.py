"""How long a rank waits for the others."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.facts import ranks  # noqa: E402


class Model:
    """Returns what DistributedDataParallel does after the given iterations, as (iteration, exchange, beside)
    in ms."""

    def __init__(self, *iterations):
        self.iterations = iter(iterations)

    def _get_ddp_logging_data(self):
        iteration, exchange, beside = next(self.iterations)
        return {
            "iteration": iteration,
            "backward_comm_time": exchange * 1000000,
            "backward_compute_comm_overlap_time": beside * 1000000,
        }


class ExchangeTest(unittest.TestCase):
    def wait_s(self, *iterations):
        exchange, model = ranks.Exchange(), Model(*iterations)
        for _ in iterations:
            exchange.look(model)
        return exchange.wait_s()

    def test_the_start_is_left_out(self):
        self.assertIsNone(self.wait_s((0, 0, 0), (1, 2000, 0), (2, 900, 0)))
        self.assertAlmostEqual(
            self.wait_s((1, 2000, 0), (2, 900, 0), (3, 12, 2), (4, 11, 2), (5, 700, 0)), 0.010
        )

    def test_an_iteration_counts_once(self):
        self.assertAlmostEqual(self.wait_s((3, 1, 0), (10, 5, 0), (10, 5, 0), (10, 5, 0), (100, 3, 0)), 0.003)

    def test_what_hides_behind_the_backward_pass_is_no_wait(self):
        self.assertEqual(self.wait_s((3, 4, 6), (4, 5, 5)), 0)

    def test_only_later_iterations_count_once_there_are_enough(self):
        early = [(iteration, 90, 0) for iteration in range(3, 11)]
        later = [(iteration, 10, 4) for iteration in range(20, 100, 10)]
        self.assertAlmostEqual(self.wait_s(*early, *later[:7]), 0.090)
        self.assertAlmostEqual(self.wait_s(*early, *later), 0.006)

    def test_of_a_long_run_the_kept_iterations_are_spread_over_it_and_the_same_in_all_ranks(self):
        kept = []
        for missed in (0, 5):
            exchange = ranks.Exchange()
            model = Model(*((iteration, 5, 0) for iteration in range(3 + missed, 5000)))
            for _ in range(4997 - missed):
                exchange.look(model)
            kept.append([iteration for iteration, _ in exchange.note(0)["waits_us"]])
        self.assertLessEqual(len(kept[0]), 64)
        self.assertGreater(len(kept[0]), 31)
        self.assertGreater(kept[0][-1], 4800)
        self.assertEqual(kept[0], kept[1])

    def test_exchanges_of_a_step(self):
        for iteration, steps, each in ((70, 71, 1), (150, 250, 1), (70, 280, 0.25), (400, 100, 4)):
            exchange = ranks.Exchange()
            exchange.look(Model((iteration, 5, 0)), steps)
            self.assertEqual(exchange.note(0)["exchanges_per_step"], each)

    def test_on_a_cpu_an_exchange_costs_no_more_than_the_backward_pass_waits(self):
        for model_waits, waited_ms, cost_s in ((True, 30, 0.030), (True, 90, 0.050), (True, 2, 0.010)):
            exchange, model = ranks.Exchange(), Model((3, 50, 40))
            model.device_type, model.require_backward_grad_sync = "cpu", model_waits
            model._set_ddp_runtime_logging_sample_rate = lambda rate: None
            exchange.look(model)
            exchange.backward_ends((waited_ms + 7) * 1000000, 7000000)
            model.require_backward_grad_sync = False
            exchange.backward_ends(1000000, 1000000)
            self.assertAlmostEqual(exchange.note(0)["exchange_seconds"], cost_s)

    def test_what_hides_behind_the_backward_pass_costs_nothing_on_a_gpu(self):
        exchange = ranks.Exchange()
        exchange.look(Model((3, 50, 40)))
        self.assertAlmostEqual(exchange.note(0)["exchange_seconds"], 0.010)

    def test_another_model_is_left_out(self):
        exchange, model = ranks.Exchange(), Model((3, 5, 0), (4, 5, 0))
        exchange.look(model)
        exchange.look(Model((5, 70, 0)))
        exchange.look(model)
        self.assertEqual(exchange.note(1)["waits_us"], [[3, 5000], [4, 5000]])

    def test_other_books_tell_nothing(self):
        class Older:
            def _get_ddp_logging_data(self):
                return {"iteration": 5}

        exchange = ranks.Exchange()
        exchange.look(Older())
        exchange.look(object())
        self.assertIsNone(exchange.wait_s())


if __name__ == "__main__":
    unittest.main()
