"""tests/gpu: how the suite for a GPU divides its time, with parts that hang, fail or are cut."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "gpu"))

import gpu_suite  # noqa: E402
import known  # noqa: E402
import suite as suites  # noqa: E402


def text_of(path):
    with open(path) as file:
        return file.read()


class SuiteTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def suite(self, **options):
        return suites.Suite("unidle", "python", self.folder, self.folder, **options)

    def written(self):
        with open(os.path.join(self.folder, "gpu-suite.json")) as file:
            return json.load(file)

    def file(self, name, text, mode=0o755):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def test_all_that_is_wanted_is_a_part(self):
        tests = os.path.join(HERE, "..", "..", "tests")
        names = [name for name, *_ in gpu_suite.parts(self.suite(), tests, "root")]
        wanted = {"answers", "speed", "readings", "overhead", "parity", "kernels", "trace", "driver", "mig"}
        wanted |= {"optimize-engine", "optimize-program", "monitor-smi", "loader-idle"}
        wanted |= set(known.TABLE)
        wanted |= {one[:-3] for one in os.listdir(tests) if one.endswith("_gpu_test.sh")}
        self.assertLessEqual(wanted, set(names))
        self.assertEqual(len(names), len(set(names)))

    def test_what_tells_most_fits_the_budget(self):
        tests = os.path.join(HERE, "..", "..", "tests")
        found = gpu_suite.parts(self.suite(), tests, "root")
        names = [name for name, *_ in found]
        least = found[: names.index("gan") + 1]  # the last of the usual programs
        alone = sum(seconds for name, _, seconds, _ in least if not gpu_suite.is_untimed(name))
        at_once = max(seconds for name, _, seconds, _ in least if gpu_suite.is_untimed(name))
        self.assertLess(alone + at_once, suites.BUDGET_S)
        order = [
            "engine_gpu_test",
            "fork",
            "parity",
            "overhead",
            "fp32_item",
            "readings",
            "speed",
            "driver",
            "kernels",
        ]
        self.assertEqual(sorted(order, key=names.index), order)

    def test_records_come_in_one_archive_that_is_not_too_large(self):
        suite = self.suite()
        for name, size in (("small.rec", 10), ("large.rec", suites.MOST_OF_ONE + 1)):
            os.makedirs(suite.record(name))
            with open(os.path.join(suite.record(name), "record.db"), "w") as file:
                file.truncate(size)
        suite.archive()
        with tarfile.open(os.path.join(self.folder, suites.ARCHIVE)) as archive:
            self.assertEqual(archive.getnames(), ["small.rec", "small.rec/record.db"])

    def test_a_program_is_talked_to_and_its_end_is_told(self):
        suite = self.suite()
        talk = suite.start("echo", "bash", "-c", "read line; echo got $line; echo ouch >&2; exit 3")
        talk.say("a word")
        self.assertEqual(talk.hear(20), "got a word")
        with self.assertRaisesRegex(RuntimeError, "echo ended with 3: ouch"):
            talk.hear(20)
        talk.end()
        silent = suite.start("silent", "sleep", "1000")
        with self.assertRaises(TimeoutError):
            silent.hear(0.1)
        silent.end()
        self.assertFalse(suites.alive(silent.process.pid))

    def test_a_command_that_hangs_is_ended_with_what_it_started(self):
        # A grandchild in its own session ignores SIGTERM and holds the output open.
        hangs = self.file(
            "hangs",
            "#!/bin/bash\necho begun\n"
            "setsid bash -c 'trap : TERM; echo $$ >pid; while :; do sleep 1; done'\n",
        )
        suite = self.suite()
        code, text, _, _ = suite.run(hangs, patience=1)
        self.assertEqual((code, text), ("took over 1 s", "begun\n"))
        with open(os.path.join(self.folder, "pid")) as file:
            self.assertFalse(suites.alive(int(file.read())))

    def test_a_part_that_hangs_leaves_the_later_ones_their_time(self):
        suite = self.suite(budget_s=16)
        did = []
        gpu_suite.run_parts(
            suite,
            [
                ("hangs", lambda: did.append(suite.run("sleep", "1000")[0]), 0, 60),
                ("later", lambda: suite.add("later", "holds"), 10, 60),
            ],
        )
        self.assertEqual(did, ["took over 6 s"])
        self.assertEqual([one["status"] for one in self.written()["results"]], ["holds"])

    def test_parts_that_are_not_timed_run_at_once(self):
        suite, both = self.suite(), threading.Barrier(2, timeout=20)

        def meets(name):
            both.wait()
            suite.add(name, "holds")

        gpu_suite.run_parts(
            suite, [(name, lambda name=name: meets(name), 1, 60) for name in ("fork", "capture")]
        )
        self.assertEqual({one["status"] for one in self.written()["results"]}, {"holds"})

    def test_a_short_part_is_begun_though_the_later_ones_need_more_than_there_is(self):
        suite, did = self.suite(budget_s=20), []
        later = ("later", lambda: suite.add("later", "holds"), 1000, 2000)
        gpu_suite.run_parts(suite, [("short", lambda: did.append("short"), 1, 30), later])
        self.assertEqual(did, ["short"])

    def test_time_that_is_left_over_goes_to_parts_that_lacked_it(self):
        suite, tries = self.suite(budget_s=20), []

        def short():
            tries.append(suite.part_end - time.monotonic())
            suite.add("short", "holds" if len(tries) > 1 else "skipped", lacked_time=len(tries) < 2)

        gpu_suite.run_parts(
            suite, [("short", short, 6, 60), ("later", lambda: suite.add("later", "holds"), 14, 60)]
        )
        self.assertEqual(len(tries), 2)
        self.assertGreater(tries[1], tries[0] + 5)
        told = {one["name"]: one["status"] for one in self.written()["results"]}
        self.assertEqual(told, {"short": "holds", "later": "holds"})

    def test_a_part_for_which_no_time_is_left_is_skipped_by_name(self):
        suite = self.suite(budget_s=1)
        gpu_suite.run_parts(suite, [("late", self.fail, 5, 60)])
        told = self.written()["results"]
        self.assertEqual(
            [(one["name"], one["status"], one["why"]) for one in told], [("late", "skipped", "no time left")]
        )

    def test_a_part_that_throws_fails_alone(self):
        suite = self.suite()
        gpu_suite.run_parts(
            suite, [("throws", lambda: {}["x"], 1, 60), ("next", lambda: suite.add("next", "holds"), 1, 60)]
        )
        told = self.written()
        self.assertEqual([one["status"] for one in told["results"]], ["fails", "holds"])
        self.assertEqual(told["counts"], {"holds": 1, "fails": 1, "skipped": 0})

    def begun(self, sign):
        """A whole suite whose first program hangs, ended by `sign` while it runs."""
        python = self.file(
            "python",
            '#!/bin/bash\nif [ "$1" = -c ]; then echo \'{"device": "H200"}\'\n'
            "else echo $$ >%s/pid; exec sleep 1000; fi\n" % self.folder,
        )
        unidle = self.file("unidle", "#!/bin/bash\nexit 3\n")
        script = os.path.join(HERE, "..", "..", "tests", "gpu", "gpu_suite.py")
        arguments = [
            "--python",
            python,
            "--out",
            self.folder,
            "--work",
            self.folder,
            "--only",
            "speed",
            "fork",
        ]
        whole = subprocess.Popen([sys.executable, script, unidle, *arguments], stdout=subprocess.DEVNULL)
        path = os.path.join(self.folder, "pid")
        while not os.path.exists(path) or not text_of(path).endswith("\n"):
            self.assertIsNone(whole.poll())
            time.sleep(0.05)
        whole.send_signal(sign)
        whole.wait()
        return int(text_of(path))

    def test_a_suite_that_is_cut_leaves_what_it_found(self):
        for sign in (signal.SIGTERM, signal.SIGKILL):
            child = self.begun(sign)
            told = self.written()
            self.assertEqual((told["complete"], told["under_way"]), (False, "bare, fork"), sign)
            self.assertEqual(told["results"], [], sign)
            self.assertEqual(suites.alive(child), sign == signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.remove(os.path.join(self.folder, "pid"))


if __name__ == "__main__":
    unittest.main()
