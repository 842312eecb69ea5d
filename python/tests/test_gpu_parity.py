"""bench/common/gpu_parity.py: both sides of a comparison on a GPU, with scripted programs."""

import os
import subprocess
import sys
import time
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))

from common import gpu_parity  # noqa: E402

WARM = "import sys; print('ready', flush=True); sys.stdin.readline(); print('{\"samples_per_s\": %s}')"
BROKEN = "raise RuntimeError('no Triton')"
SILENT = "import time; time.sleep(1000)"


class Plan:
    """Programs of torch by variant."""

    environment = None

    def __init__(self, programs):
        self.programs = programs

    def peer(self, workload, way, precision, seconds):
        return [sys.executable, "-c", self.programs[way]]


class ComparisonTest(unittest.TestCase):
    def compared(self, programs, engine, modes=("off", "graph"), slow=(), seconds=20):
        rows = []
        comparison = gpu_parity.Comparison(
            Plan(programs), ["recsys"], rows.append, ways=list(programs), modes=list(modes), precisions=1
        )
        with unittest.mock.patch.object(gpu_parity, "engine_rates", engine):
            comparison.warm_up(seconds)
            comparison.slow |= set(slow)
            comparison.measure("recsys")
        comparison.end()
        return rows

    def engine(self, rates):
        def told(plan, workload, samples, modes, precisions, patience=0):
            if any(mode not in rates for mode in modes):
                raise RuntimeError("such a mode there is not")
            return {
                (mode, "fp32"): {"samples_per_s": rates[mode], "effective": {}, "loss_last": 1.0}
                for mode in modes
            }

        return told

    def test_the_best_of_one_side_stands_against_the_best_of_the_other(self):
        rows = self.compared(
            {"eager": WARM % 100, "graph": WARM % 200}, self.engine({"off": 50, "graph": 300})
        )
        self.assertEqual(
            rows[-1], {"workload": "recsys", "ratio": 1.5, "ours": "graph fp32", "theirs": "graph fp32"}
        )

    def test_a_way_that_fails_or_never_warms_up_costs_its_own_figure(self):
        programs = {"default": BROKEN, "max-autotune": SILENT, "eager": WARM % 100}
        rows = self.compared(programs, self.engine({"off": 50, "graph": 300}), seconds=5)
        told = {row["way"]: row.get("error", "") for row in rows if row.get("side") == "PyTorch"}
        self.assertEqual(told["default"], "RuntimeError: no Triton")
        self.assertIn("said nothing", told["max-autotune"])
        self.assertEqual(told["eager"], "")
        self.assertEqual(rows[-1]["ratio"], 3.0)

    def test_a_mode_that_fails_leaves_the_others(self):
        modes = ("off", "graph", "fused")
        rows = self.compared({"eager": WARM % 100}, self.engine({"off": 50, "graph": 300}), modes)
        told = {row["way"]: row.get("error", "") for row in rows if row.get("side") == "unidle"}
        self.assertEqual(told, {"off": "", "graph": "", "fused": "such a mode there is not"})
        rows = self.compared({"eager": WARM % 100}, self.engine({"off": 50, "graph": 300}), modes, ["recsys"])
        told = {row["way"]: row.get("error", "") for row in rows if row.get("side") == "unidle"}
        self.assertEqual(told, {"off": "", "graph": "", "fused": "was not compiled in time"})

    def test_with_a_program_that_takes_too_long_ends_its_compiler(self):
        command = ["bash", "-c", "sleep 1000 & echo $! >&2; wait"]
        with self.assertRaises(subprocess.TimeoutExpired) as cut:
            gpu_parity.answer_of(command, None, 1)
        compiler = int(cut.exception.stderr)
        until = time.monotonic() + 20
        while os.path.exists("/proc/%d" % compiler) and time.monotonic() < until:
            with open("/proc/%d/stat" % compiler) as file:
                if file.read().rpartition(")")[2].split()[0] in "ZX":
                    break
            time.sleep(0.05)
        self.assertLess(time.monotonic(), until)


if __name__ == "__main__":
    unittest.main()
