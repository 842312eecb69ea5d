"""Faults around an observed program: it must end as without us, and the record must contain everything up to
then."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

from run_case import HAS_TORCH, HERE, UNIDLE, Record, environment

FAULTS = os.path.join(HERE, "programs", "faults.py")


@unittest.skipUnless(os.path.exists(UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
@unittest.skipUnless(HAS_TORCH, "there is no torch")
class FaultTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.path = os.path.join(self.folder, "record")

    def command(self, *arguments):
        return [UNIDLE, "run", "-o", self.path, "--", *arguments]

    def bare(self, *arguments, **more):
        return subprocess.run(
            arguments, cwd=self.folder, env=environment(**more), capture_output=True, text=True
        )

    def observed(self, *arguments, **more):
        done = subprocess.run(
            self.command(*arguments), cwd=self.folder, env=environment(**more), capture_output=True, text=True
        )
        done.stderr = "".join(
            line for line in done.stderr.splitlines(True) if not line.startswith("unidle: ")
        )
        return done

    def same_as_bare(self, *arguments, **more):
        bare, done = self.bare(*arguments, **more), self.observed(*arguments, **more)
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr), (bare.returncode, bare.stdout, bare.stderr)
        )
        self.record = Record(self.path)
        return done

    def steps(self):
        return self.record.one("select count(*) from steps")

    def still_on(self):
        self.assertEqual(
            [note["reason"] for note in self.record.notes("shim") if note["status"] == "off"], []
        )

    # -- the program ends early
    # --------------------------------------------------------------------------------------

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            with self.subTest(number.name):
                self.path = os.path.join(self.folder, number.name)
                running = subprocess.Popen(
                    self.command(sys.executable, FAULTS, "wait"),
                    cwd=self.folder,
                    env=environment(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
                ready, pid = running.stdout.readline().split()
                self.assertEqual(ready, "ready")
                if number == signal.SIGKILL:
                    os.kill(int(pid), number)
                else:
                    running.send_signal(number)  # unidle passes it on
                running.stdout.close()
                self.assertEqual(running.wait(), 128 + number)
                self.record = Record(self.path)
                self.assertEqual(self.steps(), 8)
                self.assertEqual(self.record.meta("problems"), [])

    def test_an_exception_and_an_exit_code(self):
        self.assertEqual(self.same_as_bare(sys.executable, FAULTS, "raise").returncode, 1)
        self.assertEqual(self.steps(), 6)
        self.assertEqual(
            [note["message"] for note in self.record.notes("exception")], ["RuntimeError: it diverged"]
        )
        self.path += "2"
        self.assertEqual(self.same_as_bare(sys.executable, FAULTS, "exit").returncode, 3)
        self.assertEqual(self.steps(), 8)
        self.assertEqual(self.record.notes("exception"), [])

    # -- nobody reads, nothing can be written
    # --------------------------------------------------------------------------

    def test_a_full_ring_costs_events_and_nothing_else(self):
        done = self.observed(sys.executable, FAULTS, "unread")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.record = Record(self.path)
        self.assertGreater(self.record.meta("events_dropped"), 0)
        self.assertIn("dropped because a ring was full", "".join(self.record.meta("problems")))
        self.assertGreater(self.steps(), 1000)
        # A step is in the record with all of its parts, or without any if it was only marked, or not at all.
        self.assertEqual(
            self.record.one(
                "select count(*) from steps where (forward_ns is null) + (backward_ns is null) + "
                "(optimizer_ns is null) not in (0, 3)"
            ),
            0,
        )
        self.still_on()

    def test_no_room_for_files(self):
        done = self.same_as_bare("sh", "-c", "ulimit -f 64; exec %s %s exit" % (sys.executable, FAULTS))
        self.assertEqual(done.returncode, 3)
        self.assertEqual(
            [note["reason"] for note in self.record.notes("shim") if note["status"] == "off"],
            ["no ring could be made in UNIDLE_PROBE_DIR"],
        )

    def test_a_disk_that_is_full(self):
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        if (
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=700k", "none", disk], capture_output=True
            ).returncode
            != 0
        ):
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], capture_output=True)
        bare = self.bare(sys.executable, FAULTS, "exit")
        self.path = os.path.join(disk, "record")
        done = self.observed(sys.executable, FAULTS, "exit")
        self.assertEqual((done.returncode, done.stdout), (bare.returncode, bare.stdout))

    def test_a_record_that_cannot_be_made(self):
        with open(os.path.join(self.folder, "file"), "w"):
            pass
        self.path = os.path.join(self.folder, "file", "record")
        done = self.observed(sys.executable, FAULTS, "exit")
        self.assertEqual(done.returncode, 3)

    # -- many processes
    # ------------------------------------------------------------------------------------------------

    def test_a_burst_of_children(self):
        self.same_as_bare(sys.executable, FAULTS, "children", "100")
        self.assertEqual(
            self.record.one("select count(distinct process) from notes"), 1
        )  # a child that does nothing leaves nothing
        self.assertEqual(self.steps(), 8)
        self.still_on()

    def test_two_hundred_workers(self):
        self.same_as_bare(sys.executable, "-W", "ignore", FAULTS, "crowd", "200")
        self.assertEqual(self.steps(), 256)
        self.assertEqual(self.record.one("select sum(samples) from sample_work"), 256)
        self.assertEqual(self.record.meta("problems"), [])
        self.still_on()

    def test_iterable_datasets(self):
        for mode in ("stream", "streams"):
            with self.subTest(mode):
                self.path = os.path.join(self.folder, mode)
                self.same_as_bare(sys.executable, FAULTS, mode)
                self.assertEqual(self.steps(), 16)
                self.assertEqual(self.record.one("select sum(samples) from sample_work"), 128)
                self.assertEqual(self.record.notes("loader")[-1]["iterable"], True)
                self.still_on()

    @unittest.skipUnless(
        HAS_TORCH and __import__("torch").distributed.is_available(), "torch has no distributed package"
    )
    def test_ranks_of_torchrun(self):
        done = self.observed(
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc_per_node=2",
            FAULTS,
            "distributed",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.record = Record(self.path)
        self.assertEqual(
            sorted(
                count for _, count in self.record.rows("select process, count(*) from steps group by process")
            ),
            [4, 4],
        )
        self.assertEqual(
            sorted(
                {(note["kind"], note["world_size"], note["rank"]) for note in self.record.notes("parallel")}
            ),
            [("ddp", 2, 0), ("ddp", 2, 1)],
        )

    # -- ways to start Python
    # --------------------------------------------------------------------------------------------

    def test_a_module(self):
        shutil.copy(FAULTS, os.path.join(self.folder, "training.py"))
        self.same_as_bare(sys.executable, "-m", "training", "exit")
        self.assertEqual(self.steps(), 8)

    def test_isolated(self):
        self.same_as_bare(sys.executable, "-I", FAULTS, "exit")
        self.assertEqual(self.steps(), 0)
        self.assertEqual(self.record.meta("tier").replace("+nvml", ""), "host")

    def test_why_nothing_is_seen(self):
        for words, why in (
            ([sys.executable, "-I"], "isolated"),
            (["env", "-u", "PYTHONPATH", sys.executable], "environment"),
        ):
            with self.subTest(why):
                self.path = os.path.join(self.folder, why)
                running = subprocess.Popen(
                    self.command(*words, FAULTS, "wait"),
                    cwd=self.folder,
                    env=environment(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                self.assertEqual(self.wait_for_note("unseen")["why"], why)
                running.terminate()
                running.wait()

    def wait_for_note(self, kind):
        """Waits until there is one in the record of a running program; bounded by the test's time limit."""
        while True:
            try:
                found = Record(self.path).notes(kind)
            except sqlite3.OperationalError:  # no record or table yet
                found = []
            if found:
                return found[0]
            time.sleep(0.1)

    def test_import_hooks_of_the_program(self):
        site = os.path.join(self.folder, "site")
        os.mkdir(site)
        hook = (
            "import importlib.abc, sys\n"
            "class Hook(importlib.abc.MetaPathFinder):\n"
            "    seen = []\n"
            "    def find_spec(self, name, path, target=None):\n"
            "        if name == 'torch': Hook.seen.append(name)\n"
            "sys.meta_path.insert(0, Hook())\n"
            "import atexit; atexit.register(lambda: print('hook saw', len(Hook.seen) > 0))\n"
        )
        with open(os.path.join(site, "sitecustomize.py"), "w") as file:
            file.write(hook)
        done = self.same_as_bare(sys.executable, FAULTS, "exit", PYTHONPATH=site)
        self.assertIn("hook saw True", done.stdout)
        self.assertEqual(self.steps(), 8)

    def test_import_hooks_that_put_ours_away(self):
        site = os.path.join(self.folder, "site")
        os.mkdir(site)
        with open(os.path.join(site, "sitecustomize.py"), "w") as file:
            file.write(
                "import sys\n"
                "sys.meta_path[:] = [f for f in sys.meta_path if 'unidle' not in type(f).__module__]\n"
            )
        self.assertEqual(self.same_as_bare(sys.executable, FAULTS, "exit", PYTHONPATH=site).returncode, 3)
        self.assertEqual(self.steps(), 0)
        self.assertIn("+python", self.record.meta("tier"))


if __name__ == "__main__":
    unittest.main()
