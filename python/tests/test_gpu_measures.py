"""tests/gpu: the measurements of the suite for a GPU, with scripted answers in place of programs and
devices."""

import contextlib
import json
import os
import signal
import sqlite3
import sys
import tempfile
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "gpu"))

import costs  # noqa: E402
import known  # noqa: E402
import machine  # noqa: E402
import measures  # noqa: E402
import parity  # noqa: E402
import readings  # noqa: E402
import suite as suites  # noqa: E402


def found(name, severity):
    return {"id": name, "severity": severity}


class Scripted:
    """A suite whose programs answer according to `answer(command)`: (exit code, stdout, stderr)."""

    unidle, python, work = "unidle", "python", "work"
    observed_s = 1.0  # duration of a run under observation
    begun = staticmethod(lambda: None)  # of `unidle run`

    def __init__(self, answer):
        self.answer, self.results, self.commands = answer, [], []

    def record(self, name):
        return os.path.join(self.work, name)

    def run(self, *command, patience=None, environment=None):
        self.commands.append(command)
        if command[1] == "run":
            self.begun()
            return (*self.answer(command), self.observed_s)
        return (*self.answer(command), 0.0)

    def add(self, name, status, **facts):
        self.results.append(dict(facts, name=name, status=status))


class Told:
    """A program of `costs` whose steps take the scripted time."""

    def __init__(self, suite, name, steps):
        self.suite, self.name, self.steps, self.process = suite, name, steps, unittest.mock.Mock(pid=0)
        self.answers = ["ready"]

    def say(self, line):
        took = self.steps(self.name)
        self.answers.append("1000 %s" % (1000 * took) if took else RuntimeError("no device"))

    def hear(self, patience):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self):
        pass


class CostsTest(unittest.TestCase):
    """Programs that train alternately; the observed one is slower, as scripted."""

    def measured(self, observed_s, bare_s=1e-3):
        turns, begun = iter(observed_s), []

        def steps(name):
            begun.append(name)
            return next(turns) if "observed" in name else bare_s

        suite = Scripted(None)
        suite.record = lambda name: name
        suite.start = lambda name, *command: Told(suite, name, steps)
        with unittest.mock.patch("os.kill") as kill, unittest.mock.patch.object(costs, "TURNS", 7):
            costs.overhead(suite)
        self.signals = [call.args[1] for call in kill.call_args_list]
        self.begun = begun
        return {one["name"]: one for one in suite.results}

    def per_kind(self, *ratios):
        """The answers while it warms up, and for each interval the settling part and the counted part."""
        turns = [1e-3 * ratio for ratio in ratios for _ in range(2)]
        return [1e-3, 1e-3] + turns + turns

    def test_the_median_of_the_pairs_decides(self):
        told = self.measured(self.per_kind(1.0, 1.0, 1.001, 1.001, 1.001, 1.5, 1.5))
        self.assertEqual({one["status"] for one in told.values()}, {"holds"})
        told = self.measured(self.per_kind(1.0, 1.0, 1.0, 1.2, 1.2, 1.2, 1.2))
        self.assertEqual({one["status"] for one in told.values()}, {"fails"})
        self.assertIn("1.2000 (1.0000 to 1.2000)", told["overhead-host"]["why"])

    def test_pairs_alternate_and_the_observer_stands_still_meanwhile(self):
        self.measured(self.per_kind(*[1.0] * 7))
        kind = [name.rpartition("-")[2] for name in self.begun if "host" in name][2:]
        self.assertEqual(kind[:8], ["bare"] * 2 + ["observed"] * 4 + ["bare"] * 2)
        self.assertEqual(self.signals.count(signal.SIGSTOP), 2 * (1 + 7))  # after each interval
        self.assertEqual(self.signals[-1], signal.SIGCONT)

    def test_a_program_that_fails_is_told(self):
        told = self.measured([0] * 20)
        self.assertEqual(told["overhead"]["status"], "fails")
        self.assertIn("no device", told["overhead"]["why"])


class ParityTest(unittest.TestCase):
    FIGURES = [
        {"workload": "recsys", "side": "PyTorch", "way": "eager", "precision": "fp32", "step_ms": 1.0},
        {
            "workload": "recsys",
            "side": "PyTorch",
            "way": "default",
            "precision": "fp32",
            "error": "no Triton",
        },
        {
            "workload": "recsys",
            "side": "unidle",
            "way": "graph",
            "precision": "fp32",
            "step_ms": 0.5,
            "samples_per_s": 10.0,
        },
    ]
    RATIO = {"workload": "recsys", "ratio": 2.0, "ours": "graph fp32", "theirs": "eager fp32"}
    NAIVE = {
        "workload": "recsys",
        "side": "unidle",
        "way": "naive.yaml",
        "precision": "fp32",
        "step_ms": 2.5,
        "samples_per_s": 2.0,
    }

    def told(self, *lines):
        suite, answers = Scripted(None), iter(lines)
        suite.trainer = lambda: "unidle-train"
        talk = unittest.mock.Mock()

        def hear(patience):
            line = next(answers)
            if isinstance(line, Exception):
                raise line
            return line if isinstance(line, str) else json.dumps(line)

        talk.hear = hear
        suite.start = lambda *command: talk
        parity.Parity(suite, "root").measure()
        talk.end.assert_called()
        return {one["name"]: one for one in suite.results}

    def test_the_best_of_both_sides_is_compared(self):
        told = self.told("ready", *self.FIGURES, self.RATIO, self.NAIVE, "over")
        self.assertEqual(told["parity-recsys"]["status"], "holds")
        self.assertIn("PyTorch default fp32 (no Triton)", told["parity-recsys"]["said"])
        self.assertEqual(told["naive-to-tuned"]["gains"], {"recsys": 5.0})
        told = self.told("ready", *self.FIGURES, dict(self.RATIO, ratio=0.9), "over")
        self.assertEqual(told["parity-recsys"]["status"], "fails")

    def test_what_is_cut_off_leaves_its_figures(self):
        told = self.told("ready", *self.FIGURES, TimeoutError("says nothing"))
        self.assertEqual(told["parity-recsys"]["status"], "skipped")
        self.assertEqual(len(told["parity-recsys"]["rows"]), 3)
        self.assertIn("says nothing", told["parity"]["why"])


class ReadingsTest(unittest.TestCase):
    def told(self, cupti):
        found = {"nvml": 0.9, "cupti": cupti, "span": 0.8, "kept_up": 1.0}
        answers = {"run": (0, "", ""), "diagnose": (0, json.dumps({"device": {"busy": 0.5}}), "")}
        suite = Scripted(lambda command: answers[command[1]])
        suite.record = lambda name: name
        with unittest.mock.patch("readings.of_record", return_value=found):
            readings.one(suite, "launch_bound")
        return suite.results[0]

    def test_a_diagnosis_far_from_the_union_of_kernels_fails(self):
        self.assertEqual(self.told(0.45)["status"], "holds")
        self.assertEqual(self.told(0.2)["status"], "fails")
        self.assertEqual(self.told(None)["status"], "holds")
        self.assertIn("nvml 0.900, cupti -", self.told(None)["said"])


class IdleTest(unittest.TestCase):
    def compared(self, said, code=0, busy=0.01):
        suite = Scripted(lambda command: (code, said, "no profiler"))
        if busy is not None:
            suite.results.append({"name": "loader_bound", "diagnosis": {"device": {"busy": busy}}})
        measures.idle_beside_profiler(suite)
        return suite.results[-1]["status"]

    def test_three_points_from_the_profiler_hold(self):
        self.assertEqual(self.compared("busy 0.035"), "holds")
        self.assertEqual(self.compared("busy 0.05"), "fails")

    def test_without_a_profiler_or_a_diagnosis_it_is_skipped(self):
        self.assertEqual(self.compared("busy skipped: the profiler saw no kernels"), "skipped")
        self.assertEqual(self.compared("busy 0.01", busy=None), "skipped")
        self.assertEqual(self.compared("", code=1), "fails")


class MonitorTest(unittest.TestCase):
    OURS = {"utilisation": {"mean": 0.5}, "memory_bytes": {"mean": 1e9}, "power_w": None}

    def compared(self, theirs):
        suite = Scripted(None)
        measures.compare(suite, self.OURS, theirs)
        return suite.results[0]

    def test_close_holds_and_what_one_does_not_tell_is_said(self):
        told = self.compared({"utilisation": 0.6, "memory_bytes": 1.01e9, "power_w": 300.0})
        self.assertEqual(told["status"], "holds")
        self.assertIn("power_w: not told by us", told["said"])

    def test_far_fails_and_names_it(self):
        told = self.compared({"utilisation": 0.9, "memory_bytes": 2e9, "power_w": None})
        self.assertEqual(
            (told["status"], told["why"]), ("fails", "far from nvidia-smi: utilisation, memory_bytes")
        )

    def test_without_nvidia_smi_it_is_skipped(self):
        suite = Scripted(lambda command: ("no such file", "", ""))
        measures.monitor_beside_smi(suite)
        self.assertEqual(suite.results[0]["status"], "skipped")

    def test_numbers_that_are_not_told(self):
        self.assertEqual([measures.number(text) for text in (" 5", "[N/A]", "")], [5.0, None, None])


class KnownTest(unittest.TestCase):
    def observed(self, bare, seen=(0, "loss 1\n"), diagnosis=None, name="loader_bound", seconds=1.0):
        told = diagnosis or {"verdict": "input-bound", "findings": [found("loader-no-workers", "critical")]}

        def answer(command):
            return (0, json.dumps(told), "") if command[1] == "diagnose" else (*seen, "")

        suite = Scripted(answer)
        suite.observed_s = seconds
        with tempfile.TemporaryDirectory() as suite.work:
            suite.begun = lambda: self.record(os.path.join(suite.work, name + ".rec"))
            known.observe(suite, name, bare)
        return suite.results[0]

    def record(self, folder):
        """The record of `unidle run`: twenty steps, with the test's device times."""
        os.makedirs(folder)
        with contextlib.closing(sqlite3.connect(os.path.join(folder, "record.db"))) as database:
            database.execute("create table notes (body)")
            database.execute("create table steps (t_ns, duration_ns)")
            database.execute("create table series (id, name, subject)")
            database.execute("create table settings (knob, value, source)")
            database.execute("insert into settings values ('device', ?, 'effective')", [self.device])
            database.execute("create table points (series, t_ns, value)")
            database.execute(
                "insert into notes values (?)", [json.dumps({"type": "shim", "status": self.shim})]
            )
            database.execute("insert into series values (1, 'step.device', '')")
            for number, (subject, held) in enumerate(self.own.items(), 2):
                database.execute("insert into series values (?, 'gpu.own_memory', ?)", [number, subject])
                database.execute("insert into points values (?, 5, ?)", [number, held])
            for step in range(self.steps):
                database.execute("insert into steps values (?, 1000000)", [step])
                database.execute("insert into points values (1, ?, ?)", [step, self.device_s])
            database.commit()

    shim, steps, device_s = "on", 20, 1e-3
    device, own = "cuda:1", {}

    def test_the_record_has_every_step_to_the_end(self):
        def with_length(name):
            with unittest.mock.patch.dict(os.environ, UNIDLE_PROGRAM_LENGTH="0.01"):
                return self.observed(
                    (0, "loss 1\n", "", 2.0), name=name, diagnosis={"verdict": "", "findings": []}
                )

        self.assertEqual(with_length("gan")["status"], "holds")
        self.device_s = 0.5e-3  # of one optimiser
        self.assertIn("device time", with_length("gan")["why"])
        self.assertEqual(with_length("tf32_api")["why"], "20 steps, not 200")
        self.shim = "off"
        self.assertIn("observation ended", with_length("tf32_api")["why"])

    def test_the_same_output_and_the_right_cause_hold(self):
        self.assertEqual(self.observed((0, "loss 1\n", "", 2.0))["status"], "holds")

    def test_other_output_fails(self):
        told = self.observed((0, "loss 2\n", "", 2.0))
        self.assertEqual(told["status"], "fails")
        self.assertIn("loss 2", told["why"])

    def test_another_cause_or_one_too_many_fails(self):
        other = {"verdict": "healthy", "findings": [found("precision-fp32", "warning")]}
        self.assertEqual(self.observed((0, "loss 1\n", "", 2.0), diagnosis=other)["status"], "fails")
        told = self.observed((0, "loss 1\n", "", 2.0), diagnosis=other, name="fp16_scaler")
        self.assertEqual(told["why"], "precision-fp32 is said")

    def test_what_did_not_run_without_us_is_skipped(self):
        self.assertEqual(self.observed((suites.NOT_BEGUN, "", "", 0.0), seen=(1, ""))["status"], "skipped")
        told = self.observed(("took over 60 s", "", "", 60.0), seen=("took over 60 s", ""))
        self.assertEqual((told["status"], told["why"]), ("skipped", "without us it took over 60 s"))
        self.assertEqual(self.observed((0, "one device: skipped\n", "", 2.0))["status"], "skipped")
        told = self.observed((1, "", "RuntimeError: no Triton", 2.0))
        self.assertEqual(told["why"], "without us it ends with 1: RuntimeError: no Triton")

    def test_what_there_was_no_time_for_without_us_is_tried_with_the_program(self):
        for bare in (None, (suites.NOT_BEGUN, "", "", 0.0)):
            self.assertEqual(self.observed(bare)["status"], "holds", bare)

    def test_a_run_that_is_cut_hangs_only_if_it_had_its_time(self):
        cut = ("took over 9 s", "")
        told = self.observed((0, "loss 1\n", "", 5.0), seen=cut, seconds=9.0)
        self.assertEqual(told["why"], "no time left: it took over 9 s, 5 s without us")
        self.assertEqual(self.observed((0, "loss 1\n", "", 2.0), seen=cut, seconds=9.0)["status"], "fails")

    def test_of_an_error_its_own_line_is_told(self):
        said = "Traceback\n  File a\ntorch._inductor.exc.InductorError: no Triton\n\nSet TORCH_LOGS\n"
        self.assertEqual(known.last_line(said), "torch._inductor.exc.InductorError: no Triton")
        self.assertEqual([known.last_line(text) for text in ("a\nb\n", "")], ["b", "no word"])

    def test_a_model_on_the_last_device_has_memory_on_no_other(self):
        nothing = {"verdict": "", "findings": []}

        def why(own):
            self.own = own
            told = self.observed((0, "loss 1\n", "", 2.0), name="second_device", diagnosis=nothing)
            return told["why"]

        self.assertEqual(why({}), "")
        self.assertEqual(why({"gpu0": 0, "gpu1": 5e8}), "")
        self.assertEqual(why({"gpu0": 3e8, "gpu1": 5e8}), "it has memory on gpu0, gpu1")
        self.device = "cuda:0"
        self.assertEqual(why({}), "the model is on cuda:0")


class MachineTest(unittest.TestCase):
    def slices(self, theirs, ours):
        def answer(command):
            if command[0] == "nvidia-smi":
                return 0, theirs, ""
            return 0, json.dumps({"gpus": [{"mig_devices": [{"uuid": one} for one in ours]}]}), ""

        suite = Scripted(answer)
        machine.mig_beside_smi(suite)
        return suite.results[0]["status"]

    def test_slices_are_those_of_nvidia_smi(self):
        line = "  MIG 1g.18gb     Device  %d: (UUID: MIG-%s)\n"
        theirs = "GPU 0: NVIDIA H200 (UUID: GPU-1)\n" + line % (0, "a") + line % (1, "b")
        self.assertEqual(self.slices(theirs, ["MIG-b", "MIG-a"]), "holds")
        self.assertEqual(self.slices(theirs, ["MIG-a"]), "fails")
        self.assertEqual(self.slices("GPU 0: NVIDIA H200 (UUID: GPU-1)\n", []), "skipped")

    def test_memory_is_that_of_nvidia_smi(self):
        for bytes_told, status in ((143771 << 20, "holds"), (80 << 30, "fails")):
            suite = Scripted(
                lambda command, told=bytes_told: (
                    (0, "143771\n", "")
                    if command[0] == "nvidia-smi"
                    else (0, json.dumps({"gpus": [{"memory_bytes": told}]}), "")
                )
            )
            machine.check_beside_smi(suite)
            self.assertEqual(suite.results[0]["status"], status)

    def test_a_test_that_skips_is_told_with_its_reason(self):
        suite = Scripted(lambda command: (77, "skipped: no NVIDIA GPU here\n", ""))
        machine.run_test(suite, "tests/kernels_gpu_test.sh")
        told = suite.results[0]
        self.assertEqual((told["name"], told["status"]), ("kernels_gpu_test", "skipped"))
        self.assertIn("no NVIDIA GPU", told["why"])


if __name__ == "__main__":
    unittest.main()
