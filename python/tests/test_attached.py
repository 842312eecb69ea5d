"""unidle.observe() in programs that nobody started with `unidle run`."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import package
from run_case import HAS_TORCH, UNIDLE, Record, environment

import unidle

package.needs()

STEPS = """
import os, signal, sys, time, unidle
unidle.observe()
def steps(count):
    for _ in range(count):
        time.sleep(0.002); unidle.step(samples=3)
steps(20)
"""
RECORDS = "unidle: recording "


class AttachedCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def ran(self, text, *words, python=sys.executable, options=(), begin=(), **more):
        path = Path(self.folder) / "program.py"
        path.write_text(textwrap.dedent(text))
        return subprocess.run(
            [*begin, python, *options, path, *words],
            cwd=self.folder,
            env=environment(PYTHONPATH=sys.path[0], **more),
            capture_output=True,
            text=True,
        )

    def records(self):
        """The finished records, in the order of their names."""
        folders = sorted((Path(self.folder) / ".unidle" / "runs").glob("2*"))
        for folder in folders:  # `unidle` waits for a recorder whose program has ended
            subprocess.run([UNIDLE, "diagnose", folder], env=environment(), capture_output=True)
        return [Record(folder) for folder in folders]

    def record(self):
        (record,) = self.records()
        self.assertEqual(record.meta("problems"), [])
        return record


class AttachedTest(AttachedCase):
    def test_every_end_is_the_programs_own_and_is_recorded(self):
        ends = {
            "sys.exit(3)": (3, "completed"),
            "raise ValueError('broken')": (1, "failed"),
            "os.kill(os.getpid(), signal.SIGKILL)": (-signal.SIGKILL, None),
            "os.kill(os.getpid(), signal.SIGTERM)": (-signal.SIGTERM, None),
            "os.kill(os.getpid(), signal.SIGINT); time.sleep(9)": (-signal.SIGINT, "failed"),
            "os._exit(4)": (4, None),
            "os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(5)'])": (5, None),
        }
        for end, (code, outcome) in ends.items():
            with self.subTest(end):
                shutil.rmtree(Path(self.folder) / ".unidle", ignore_errors=True)
                done = self.ran(STEPS + "print('out', flush=True)\n" + end)
                bare = self.ran(STEPS.replace("unidle.observe()", "") + "print('out', flush=True)\n" + end)
                lines = done.stderr.splitlines(keepends=True)
                self.assertTrue(lines[0].startswith(RECORDS + ".unidle/runs/"), lines)
                self.assertEqual((done.returncode, done.stdout), (code, "out\n"))
                self.assertEqual(
                    (bare.returncode, bare.stdout, bare.stderr.count("\n")), (code, "out\n", len(lines) - 1)
                )
                record = self.record()
                self.assertEqual(record.one("select count(*) from steps"), 19)
                if outcome:
                    self.assertEqual(record.meta("outcome"), outcome)
                elif "code" in record.meta(
                    "exit"
                ):  # the kernel tells others than its parent since Linux 6.15
                    ended = record.meta("exit")["code"] or -record.meta("exit")["signal"]
                    self.assertEqual((ended, record.meta("outcome")), (code, "failed"))

    def test_a_second_call_and_forked_children_are_harmless(self):
        done = self.ran(
            STEPS
            + textwrap.dedent("""
            print(unidle.observe().record == unidle.observe().record)
            if os.fork() == 0:
                unidle.observe(); steps(5)
                with unidle.observe(): pass
                sys.exit(7)
            print(os.waitstatus_to_exitcode(os.wait()[1]))
            try: os.wait()
            except ChildProcessError: print("no other child")
            steps(10)
            """)
        )
        self.assertEqual(done.stdout, "True\n7\nno other child\n", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        counts = self.record().rows("select count(*) from steps group by process order by count(*)")
        self.assertEqual(counts, [(4,), (29,)])

    def test_under_unidle_run_it_says_nothing_and_starts_nothing(self):
        path = Path(self.folder) / "observed"
        done = self.ran(STEPS, begin=(UNIDLE, "run", "-o", path, "--"))
        self.assertNotIn(RECORDS, done.stderr)
        self.assertEqual(Record(path).one("select count(*) from steps"), 19)
        self.assertEqual(self.records(), [])

    def test_what_keeps_it_from_recording_is_one_line_and_ends_nothing(self):
        alone = Path(self.folder) / "alone"
        shutil.copytree(Path(package.__file__).parents[1] / "unidle", alone / "unidle")
        text = "import sys\nif sys.argv[1:]: sys.path.insert(0, sys.argv[1])\nimport unidle\n"
        text += "unidle.observe({})\nunidle.observe()\nunidle.step(); print('done')"
        for why, record, words, path in (
            ("not on PATH", "", [str(alone)], "/usr/bin:/bin"),
            ("cannot be written", "'/dev/null/record'", [], os.environ["PATH"]),
        ):
            with self.subTest(why):
                done = self.ran(text.format(record), *words, options=("-W", "error"), PATH=path)
                self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
                self.assertRegex(done.stderr, rf"\Aunidle: .*{why}.*; the program runs unobserved\n\Z")

    def test_stop_and_the_end_of_a_block_complete_the_record(self):
        done = self.ran("""
            import os, unidle
            before = dict(os.environ), len(os.listdir("/proc/self/fd"))
            watch = unidle.observe("first")
            for _ in range(4): unidle.step()
            print(str(watch.stop()) == os.path.abspath("first"), watch.stop(), watch.record)
            unidle.step()
            with unidle.observe("second"):
                for _ in range(6): unidle.step()
            try:
                with unidle.observe("third"): raise KeyError("absent")
            except KeyError: pass
            kept = 3 * 2  # docs/safety.md
            print((dict(os.environ), len(os.listdir("/proc/self/fd")) - kept) == before)
        """)
        self.assertEqual(done.stdout, "True None None\nTrue\n", done.stderr)
        records = [Record(Path(self.folder) / name) for name in ("first", "second", "third")]
        self.assertEqual([record.one("select count(*) from steps") for record in records], [3, 6, 0])
        outcomes = [record.meta("outcome") for record in records]
        self.assertEqual(outcomes, ["completed", "completed", "failed"])
        (raised,) = records[2].notes("exception")
        self.assertEqual((raised["message"], raised["caught"]), ("KeyError: 'absent'", False))
        self.assertIn("Traceback (most recent call last)", raised["traceback"])

    def test_ways_out_of_a_block_that_are_no_failures(self):
        done = self.ran("""
            import asyncio, unidle
            def batches():
                with unidle.observe("closed"):
                    yield 1
            async def waits():
                with unidle.observe("cancelled"): await asyncio.sleep(60)
            async def at_most():
                try: await asyncio.wait_for(waits(), 0.01)
                except asyncio.TimeoutError: print("in time")
            for batch in batches(): break
            asyncio.run(at_most())
            error = ValueError("the same twice")
            for name in ("first", "second"):
                try:
                    with unidle.observe(name): raise error
                except ValueError: pass
        """)
        self.assertEqual(done.stdout, "in time\n", done.stderr)
        records = {
            name: Record(Path(self.folder) / name) for name in ("closed", "cancelled", "first", "second")
        }
        outcomes = {name: record.meta("outcome") for name, record in records.items()}
        self.assertEqual(
            outcomes, {"closed": "completed", "cancelled": "stopped", "first": "failed", "second": "failed"}
        )
        for name in ("first", "second"):
            (raised,) = records[name].notes("exception")
            self.assertEqual(raised["message"], "ValueError: the same twice")
            self.assertNotIn("code", records[name].meta("exit") or {})

    def test_what_a_signal_handler_raises_is_the_programs(self):
        program = """
            import signal, unidle
            class Preempted(Exception): pass
            def handler(number, frame): raise Preempted
            signal.signal(signal.SIGALRM, handler)
            try:
                {}
            except Preempted: print("saved")
        """
        begins = "signal.setitimer(signal.ITIMER_REAL, 0.002)\n                unidle.observe()"
        ends = """with unidle.observe():
                    import _unidle_shim
                    before = _unidle_shim.detach
                    def detach(failure):
                        before(failure)
                        signal.raise_signal(signal.SIGALRM)
                    _unidle_shim.detach = detach"""
        for at in (begins, ends):
            done = self.ran(program.format(at))
            self.assertEqual((done.returncode, done.stdout), (0, "saved\n"), done.stderr)
            self.assertNotIn("unobserved", done.stderr)
            self.assertNotIn("incomplete", done.stderr)

    def test_descriptors_that_are_the_programs_by_now_stay_its_own(self):
        done = self.ran("""
            import os, threading, unidle
            watch = unidle.observe("record")
            for _ in range(4): unidle.step()
            os.closerange(3, 100)
            mine = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
            threading.Thread(target=watch.stop).start()
            while os.environ.get("UNIDLE_PROBE_DIR"): unidle.step()
            for fd in mine: os.fstat(fd)
            print("kept")
        """)
        self.assertEqual((done.returncode, done.stdout), (0, "kept\n"), done.stderr)
        record = Record(Path(self.folder) / "record")
        self.assertEqual((record.meta("outcome"), record.meta("problems")), ("completed", []))

    def test_what_the_program_changes_in_its_environment_stays(self):
        done = self.ran("""
            import os, unidle
            before = os.environ["PYTHONPATH"]
            with unidle.observe(): os.environ["PYTHONPATH"] = "/mine"
            print(os.environ["PYTHONPATH"])
            os.environ["PYTHONPATH"] = before
            with unidle.observe(): os.environ["PYTHONPATH"] = "/mine:" + os.environ["PYTHONPATH"] + ":/more"
            print(os.environ["PYTHONPATH"] == f"/mine:{before}:/more")
            os.environ["PYTHONPATH"] = before
            watch = unidle.observe()
            import _unidle_shim
            _unidle_shim.detach = lambda *_: 1 / 0
            watch.stop()
            print(sorted(name for name in os.environ if name.startswith("UNIDLE_")))
        """)
        self.assertEqual(done.stdout, "/mine\nTrue\n[]\n", done.stderr)
        self.assertIn("unidle: the record may be incomplete: division by zero\n", done.stderr)
        self.assertEqual([record.meta("outcome") for record in self.records()], ["completed"] * 3)

    def test_a_recorder_that_does_not_start_is_ended_and_holds_up_no_other_rank(self):
        done = self.ran(
            """
            import os, subprocess, sys
            if sys.argv[1:]:
                import unidle
                from unidle import _recording
                _recording.program = lambda: "./recorder"
                _recording._STARTS_S = 1.0
                unidle.observe()
            else:
                several = dict(os.environ, LOCAL_WORLD_SIZE="6", TORCHELASTIC_RUN_ID="none")
                with open("recorder", "w") as file: file.write("#!/bin/sh\\nsleep 99 & echo $! >> started\\n")
                os.chmod("recorder", 0o700)
                words = [sys.executable, __file__, "rank"]
                for rank in [subprocess.Popen(words, env=several) for _ in range(6)]: rank.wait()
                for number in open("started").read().split(): print(os.path.exists(f"/proc/{number}/fd/1"))
            """,
            TMPDIR=self.folder,
        )
        self.assertEqual(done.stdout, "False\n", done.stderr)
        self.assertEqual(done.stderr.count("the recorder does not start"), 6, done.stderr)

    def test_ranks_of_one_launcher_share_a_record(self):
        done = self.ran(
            """
            import os, subprocess, sys, time
            if sys.argv[1:]:
                import unidle
                unidle.observe()
                for _ in range(5): unidle.step(samples=1); time.sleep(0.002)
            else:
                several = dict(os.environ, LOCAL_WORLD_SIZE="2", TORCHELASTIC_RUN_ID="none")
                ranks = [subprocess.Popen([sys.executable, __file__, "rank"], env=several) for _ in range(2)]
                sys.exit(sum(rank.wait() for rank in ranks))
            """,
            TMPDIR=self.folder,
        )
        self.assertEqual((done.returncode, done.stderr.count(RECORDS)), (0, 1), done.stderr)
        record = self.record()
        self.assertEqual(record.rows("select count(*) from steps group by process"), [(4,), (4,)])
        self.assertEqual(list(Path(self.folder).glob("unidle-*")), [])


@unittest.skipUnless(HAS_TORCH, "needs torch")
class AttachedTorchTest(AttachedCase):
    TRAINING = """
        import sys, torch, unidle
        class Rows(torch.utils.data.Dataset):
            def __len__(self): return 32
            def __getitem__(self, row): return torch.full((4,), row / 32), torch.ones(1)
        def main(kind):
            model = torch.nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)  # keeps the optimiser's function
            workers = dict(num_workers=1, multiprocessing_context=kind) if kind else {}
            rows = torch.utils.data.DataLoader(Rows(), 4, **workers)
            def epoch():
                for x, y in rows:
                    optimizer.zero_grad()
                    loss = (model(x) - y).square().mean()
                    loss.backward()
                    optimizer.step()
                scheduler.step()
                return loss.item()
            OBSERVED
        if __name__ == "__main__":
            torch.manual_seed(0)
            main(*sys.argv[1:] or [None])
    """

    def trained(self, observed, *words):
        lines = textwrap.dedent(observed).strip().replace("\n", "\n            ")
        return self.ran(self.TRAINING.replace("OBSERVED", lines), *words)

    def test_what_was_made_before_is_seen_and_results_stay(self):
        bare = self.trained("print([epoch() for _ in range(4)])")
        done = self.trained("""
            losses = [epoch()]
            watch = unidle.observe()
            losses += [epoch(), epoch()]
            watch.stop()
            losses += [epoch()]
            with unidle.observe(): pass
            print(losses)
        """)
        self.assertEqual((done.returncode, done.stdout), (0, bare.stdout), done.stderr)
        record, empty = self.records()
        self.assertEqual(record.rows("select count(*), sum(samples) from steps"), [(16, 64)])
        self.assertEqual([note["epochs"] for note in record.notes("loader")][-1:], [2])
        self.assertEqual(record.notes("optimizer")[-1]["class"], "SGD")
        self.assertEqual([note for note in record.notes("shim") if note["status"] == "off"], [])
        self.assertEqual(empty.one("select count(*) from steps"), 0)

    def test_steps_that_were_replaced_before_stay_as_they_are(self):
        done = self.ran("""
            import gc, types, weakref, torch, unidle
            net = torch.nn.Linear(2, 1)
            scheduled, own = (torch.optim.SGD(net.parameters(), lr=0.1) for _ in range(2))
            scheduler = torch.optim.lr_scheduler.StepLR(scheduled, 1)
            own.step = types.MethodType(lambda self, closure=None: "own", own)
            unidle.observe()
            torch.optim.lr_scheduler.StepLR(own, 1)
            for _ in range(20):
                net(torch.ones(1, 2)).sum().backward()
                scheduled.step()
                scheduler.step()
            gc.collect()
            gc.disable()
            gone = weakref.ref(scheduled)
            del scheduled, scheduler
            print(own.step(), gone() is None)
        """)
        self.assertEqual((done.returncode, done.stdout), (0, "own True\n"), done.stderr)
        self.assertEqual(self.record().one("select count(*) from steps"), 20)

    def test_a_spawned_worker_is_observed(self):
        done = self.trained("unidle.observe(); epoch()", "spawn")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1), done.stderr)
        record = self.record()
        workers = [note for note in record.notes("shim") if note.get("role") == "worker"]
        self.assertGreaterEqual(len(workers), 1)
        self.assertEqual(record.one("select sum(samples) from steps"), 32)


class NotebookTest(AttachedCase):
    def said(self, *cells):
        """Runs the cells of a notebook; returns what each one says."""
        try:
            import ipykernel  # noqa: F401
            import nbclient
            import nbformat
        except ImportError as error:
            raise unittest.SkipTest(f"needs a notebook's kernel: {error}") from error
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        client = nbclient.NotebookClient(
            book, allow_errors=True, timeout=60, resources={"metadata": {"path": self.folder}}
        )
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = sys.path[0]
        try:
            client.execute()
        finally:
            os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)
        return [
            [out.get("text") or out.get("ename") or out["data"] for out in cell.outputs]
            for cell in book.cells
        ]

    def test_the_recorded_part_is_the_cells_between(self):
        said = self.said(
            "import os, signal, time, unidle\ndef steps(count):\n  for _ in range(count): unidle.step()",
            "steps(3)\nwatch = unidle.observe()",
            "steps(4)",
            "1 / 0",
            "steps(5); os.kill(os.getpid(), signal.SIGINT); time.sleep(9)",
            "steps(6)\nprint(watch.stop().parent.name)",
            "steps(7)\nwith unidle.observe() as block: steps(8); 1 / 0",
        )
        self.assertTrue(said[1][0].startswith(RECORDS) and said[6][0].startswith(RECORDS), said)
        self.assertEqual(said[2:6], [[], ["ZeroDivisionError"], ["KeyboardInterrupt"], ["runs\n"]])
        self.assertEqual(said[6][1:], ["ZeroDivisionError"])
        first, second = self.records()
        self.assertEqual((first.meta("outcome"), second.meta("outcome")), ("completed", "failed"))
        self.assertEqual(first.one("select count(*) from steps"), 14)
        self.assertEqual(second.one("select count(*) from steps"), 8)

    def test_the_magic_and_what_a_notebook_shows(self):
        said = self.said(
            "%load_ext unidle",
            "%%unidle\nfor _ in range(30): time = __import__('time'); time.sleep(0.002); unidle = "
            "__import__('unidle'); unidle.step(samples=1)\n6 * 7",
            "import unidle; unidle.diagnose()",
            "%%unidle\n1 / 0",
            "unidle.report()",
        )
        self.assertTrue(said[1][0].startswith(RECORDS), said[1])
        self.assertRegex(said[1][1], r"\A[A-Z].*[.]\n\Z")
        self.assertEqual(said[1][2]["text/plain"], "42")
        self.assertIn(said[1][1].strip(), said[2][0]["text/html"].replace("&#x27;", "'"))
        self.assertEqual(said[3][1:], ["ZeroDivisionError"])
        self.assertIn("<iframe srcdoc=", said[4][0]["text/html"])
        self.assertEqual(self.records()[0].one("select count(*) from steps"), 30)

    def test_a_cell_of_the_magic_runs_as_without_it(self):
        said = self.said(
            "%load_ext unidle\nimport ast\nfrom __future__ import annotations",
            "class Twice(ast.NodeTransformer):\n  def visit_Constant(self, node):\n"
            "    return ast.Constant(42) if node.value == 21 else node\n"
            "get_ipython().ast_transformers.append(Twice())",
            "%%unidle\ndef f(x: Unknown): pass\n21",
            "%%unidle\n6 * 7 ;  # hidden",
            "%%unidle\n'a;'",
        )
        shown = [[out.get("text/plain") for out in cell if isinstance(out, dict)] for cell in said]
        self.assertEqual(shown[2:], [["42"], [], ["'a;'"]], said)


class DiagnosisTest(AttachedCase):
    def test_it_is_what_the_program_says(self):
        done = self.ran(STEPS)
        self.assertEqual(done.returncode, 0, done.stderr)
        (folder,) = (Path(self.folder) / ".unidle" / "runs").glob("2*")
        given = environment()
        commands = ([UNIDLE, "diagnose", folder], [UNIDLE, "diagnose", folder, "--format", "json"])
        said = [subprocess.run(each, env=given, capture_output=True, text=True).stdout for each in commands]
        text, body, answer = said[0], json.loads(said[1]), unidle.diagnose(folder)
        self.assertEqual((str(answer), answer.verdict), (text, body["verdict"]))
        self.assertTrue(text.replace("\n", " ").startswith(answer.answer))
        self.assertNotIn("answer", body)
        self.assertEqual(
            [(each.rule, each.share, list(each.evidence)) for each in answer.findings],
            [(each["id"], each["share"], each["evidence"]) for each in body["findings"]],
        )
        for finding in answer.findings:
            self.assertIn(f"{finding.title} [{finding.rule}]", " ".join(text.split()))
        with self.assertRaises(unidle.InputError):
            unidle.diagnose(folder / "nothing")


if __name__ == "__main__":
    unittest.main()
