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
