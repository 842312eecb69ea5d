"""unidle.step, phase, note, observe and report: a program's own marks."""

import os
import shutil
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

LOOP = """
    import os, time, unidle

    def work(seconds):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    @unidle.observe()
    def train(steps):
        for number in range(steps):
            with unidle.phase("input"):
                work(0.004)
                with unidle.phase("log"):
                    work(0.002)
            with unidle.phase("forward"):
                work(0.001)
            unidle.step(samples=8, loss=1 / (number + 1))
            unidle.note(norm=number / 2, mode="plain", broken=float("nan"))
            if number % 5 == 4:
                with unidle.phase("validate"):
                    work(0.003)
                with unidle.phase("checkpoint"):
                    work(0.001)
        return number

"""


class ObservedTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def program(self, text):
        path = Path(self.folder) / f"program{len(os.listdir(self.folder))}.py"
        path.write_text(f"import sys; sys.path.insert(0, {sys.path[0]!r})\n" + textwrap.dedent(text))
        return path

    def record_of(self, text, *options):
        folder = os.path.join(self.folder, "record")
        done = self.ran(UNIDLE, "run", "-o", folder, *options, "--", sys.executable, self.program(text))
        self.assertEqual(done.returncode, 0, done.stderr)
        record = Record(folder)
        self.assertEqual(record.meta("problems"), [])
        return done, record

    def ran(self, *command, **more):
        return subprocess.run(
            command, cwd=self.folder, env=environment(**more), capture_output=True, text=True
        )

    def test_a_loop_without_torch_is_recorded(self):
        done, record = self.record_of(LOOP + "    print(train(20))")
        self.assertEqual(done.stdout, "19\n")
        steps = record.rows(
            "select idx, duration_ns, samples, samples_before, input_ns, forward_ns from steps"
        )
        self.assertEqual([row[0] for row in steps], list(range(20)))
        for number, (_, duration, samples, before, wait, forward) in enumerate(steps):
            self.assertEqual((samples, before), (8, 8 * number))
            self.assertGreaterEqual(duration, wait + forward)
            # Each at least as long as it worked; the two thousandths of logging are not input.
            self.assertGreaterEqual((wait >= 4e6, forward >= 1e6), (True, True))
        self.assertLess(sum(row[4] for row in steps), sum(row[1] for row in steps) - 20 * 3e6)
        spans = record.rows("select kind, count(*) from spans group by kind order by kind")
        self.assertEqual(spans, [("checkpoint", 4), ("startup", 1), ("validate", 4)])
        norms = record.rows("select step, samples, value from metrics where name='norm' order by step")
        self.assertEqual(norms, [(n + 1, 8 * (n + 1), n / 2) for n in range(20)])
        told = {(note["name"], note["value"]) for note in record.notes("noted")}
        self.assertEqual(told, {("mode", "plain"), ("broken", "nan")})

    def test_steps_ends_it_in_order(self):
        program = LOOP + "    try: train(20)\n    finally: print('finally')"
        done, record = self.record_of(program, "--steps", "7")
        self.assertEqual((done.stdout, record.one("select count(*) from steps")), ("finally\n", 7))

    def test_without_observe_the_first_call_tells_where_the_second_begins(self):
        _, record = self.record_of("import unidle\nfor _ in range(10): unidle.step(samples=2)")
        self.assertEqual(record.one("select count(*) from steps"), 9)

    def test_a_forked_child_and_other_threads_are_kept_apart(self):
        program = """
            import os, threading, unidle
            for _ in range(5): unidle.step()
            thread = threading.Thread(target=lambda: [unidle.step() for _ in range(50)])
            thread.start(); thread.join()
            child = os.fork()
            for _ in range(3): unidle.step()
            if child: os.waitpid(child, 0)
        """
        _, record = self.record_of(program)
        counts = record.rows("select count(*) from steps group by process order by count(*)")
        self.assertEqual(counts, [(2,), (7,)])

    @unittest.skipUnless(HAS_TORCH, "needs torch")
    def test_steps_of_torch_are_not_counted_twice(self):
        program = """
            import torch, unidle
            model = torch.nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            with unidle.observe():
                for _ in range(12):
                    optimizer.zero_grad()
                    loss = model(torch.ones(8, 4)).mean()
                    loss.backward()
                    optimizer.step()
                    unidle.step(samples=8)
                    unidle.note(loss_again=loss)
                with unidle.phase("validate"), torch.no_grad():
                    model.eval()(torch.ones(8, 4))
        """
        _, record = self.record_of(program)
        self.assertEqual(record.one("select count(*) from steps"), 12)
        self.assertEqual(record.one("select count(*) from metrics where name='loss_again'"), 12)
        self.assertEqual(record.one("select count(*) from spans where kind='validate'"), 1)

    def test_what_is_no_number_never_ends_the_program(self):
        program = """
            import unidle

            class Broken:
                def __float__(self): raise KeyError("no number")
                def __repr__(self): raise KeyError("no text")

            wrong = ([0.5], "x", b"1", 10**400, {}, Broken())
            with unidle.observe():
                for value in wrong:
                    unidle.step(samples=value, loss=value)
                    unidle.note(value=value)
                for samples in (-3, float("nan"), float("inf"), 10**30, None):
                    unidle.step(samples=samples, loss=float("nan"))
                unidle.step(samples=4, loss=0.25)
                unidle.step(samples=2)
            print("done")
        """
        done, record = self.record_of(program)
        self.assertEqual((done.stdout, done.stderr.count("Traceback")), ("done\n", 0))
        samples = record.rows("select samples from steps order by idx")
        self.assertEqual(samples, [(0,)] * 11 + [(4,), (2,)])
        losses = record.rows("select loss from steps where loss is not null order by idx")
        self.assertIn((0.25,), losses)

    @unittest.skipUnless(HAS_TORCH, "needs torch")
    def test_a_tensor_of_several_numbers_is_no_loss(self):
        program = """
            import torch, unidle
            with unidle.observe():
                for _ in range(3):
                    unidle.step(samples=torch.tensor(4), loss=torch.ones(2))
            print("done")
        """
        done, record = self.record_of(program)
        self.assertEqual((done.stdout, record.rows("select samples from steps")), ("done\n", [(4,)] * 3))

    def test_nobody_observes(self):
        text = LOOP.replace("@unidle.observe()", "")
        program = self.program(text + "    print(train(3), os.listdir('.'))")
        bare = self.ran(sys.executable, program)
        self.assertEqual((bare.returncode, bare.stderr), (0, ""))
        folder = Path(self.folder) / "no" / "such"
        gone = self.ran(
            sys.executable, program, UNIDLE_PROBE_DIR=str(folder), UNIDLE_PROBE_LIBRARY="/no/such.so"
        )
        self.assertEqual((gone.returncode, gone.stdout, gone.stderr), (0, bare.stdout, ""))

    def test_a_phase_has_a_known_name(self):
        with self.assertRaises(unidle.UsageError) as caught:
            unidle.phase("evaluate")
        self.assertIn("validate", str(caught.exception))

    def test_report_writes_the_page(self):
        _, record = self.record_of(LOOP + "    train(5)")
        folder = Path(self.folder) / "record"
        self.assertEqual(unidle.report(folder), folder / "report.html")
        page = unidle.report(folder, Path(self.folder) / "page.html")
        self.assertIn("norm", page.read_text())
        with self.assertRaises(unidle.InputError):
            unidle.report(Path(self.folder) / "nothing")


if __name__ == "__main__":
    unittest.main()
