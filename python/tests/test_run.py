"""`unidle run` on real PyTorch programs: the record, and that the program does not notice. Each program has
its own Python, as for a user: nothing is imported before it."""

import os
import shutil
import sys
import unittest

from run_case import HAS_TORCH, HERE, TRAIN, RunCase

# Ends while the background thread is in torch, if there is one.
ENDS_EARLY = """
import sys, threading, time, torch
weight = torch.nn.Parameter(torch.zeros(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
shim, entered = sys.modules.get("_unidle_shim.session"), threading.Event()

def works(final):
    entered.set()
    matrix, until = torch.ones(700, 700), time.monotonic() + 4
    while not final and time.monotonic() < until:
        matrix @ matrix
    return iter(())

for step in range(3):
    weight.sum().backward()
    optimizer.step()
if shim is not None:
    shim.state.facts._all = works
    entered.wait()
sys.exit(3)
"""

# Log records name their caller; the second logger searches the stack for it by itself.
LOGS = """
import logging, sys, torch

class Searching(logging.Logger):
    def findCaller(self, *_):
        frame = sys._getframe(1)
        while "logging" in frame.f_code.co_filename:
            frame = frame.f_back
        return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, None

def logs(logger):
    logger.info("step")
    logger.warning("step", stacklevel=2)
    logger._log(logging.INFO, "step %s", ("one",))

handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(logging.Formatter("%(name)s %(filename)s:%(lineno)d %(funcName)s %(message)s"))
weight = torch.nn.Parameter(torch.zeros(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
for logger in (logging.getLogger("plain"), Searching("searching")):
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    for step in range(3):
        weight.sum().backward()
        optimizer.step()
        logs(logger)
"""

# A function that returns while its line in the source is looked up by another thread, if one does.
RETURNS_MEANWHILE = """
import linecache, sys, threading, time, torch
weight = torch.nn.Parameter(torch.zeros(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
main, freed_by, reading = threading.get_ident(), [], threading.Event()
getline = linecache.getline

class Variable:
    def __del__(self):
        freed_by.append(threading.get_ident())

def slow(name, line, *others):
    if threading.get_ident() != main:
        reading.set()
        time.sleep(0.5)
    return getline(name, line, *others)

def work():
    variable, tensors, until = Variable(), [torch.ones(1) for _ in range(50000)], time.monotonic() + 3
    while not reading.is_set() and time.monotonic() < until:
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()

linecache.getline = slow
work()
print(freed_by == [main])
sys.exit(3)
"""


class RunTest(RunCase):
    fresh = True

    # -- without torch
    # ---------------------------------------------------------------------------------------------

    def test_python_without_torch(self):
        self.same_as_bare(
            sys.executable, "-c", "import sys; print([m for m in sys.path if 'unidle' in m]); sys.exit(3)"
        )
        self.assertTrue(self.record.meta("tier").endswith("+python"))
        self.assertEqual([note["status"] for note in self.record.notes("shim")], ["on"])

    def test_the_libraries_that_it_is_told_of_are_there(self):
        program = (
            "import os; probe = os.environ['UNIDLE_PROBE_LIBRARY']; "
            "print(*map(os.path.isfile, (probe, os.environ.get('UNIDLE_LIGHT_LIBRARY', probe))))"
        )
        done = self.observed(sys.executable, "-c", program)
        self.assertEqual((done.returncode, done.stdout.split()), (0, ["True", "True"]), done.stderr)

    @unittest.skipUnless(HAS_TORCH, "this Python has no torch")
    def test_the_end_waits_until_the_background_thread_has_left_torch(self):
        path = os.path.join(self.folder, "ends.py")
        with open(path, "w") as file:
            file.write(ENDS_EARLY)
        self.same_as_bare(sys.executable, path)

    @unittest.skipUnless(HAS_TORCH, "this Python has no torch")
    def test_variables_are_destroyed_by_the_program(self):
        path = os.path.join(self.folder, "returns.py")
        with open(path, "w") as file:
            file.write(RETURNS_MEANWHILE)
        self.assertEqual(self.same_as_bare(sys.executable, path).stdout, "True\n")

    @unittest.skipUnless(HAS_TORCH, "this Python has no torch")
    def test_log_records_name_their_caller(self):
        path = os.path.join(self.folder, "logs.py")
        with open(path, "w") as file:
            file.write(LOGS)
        self.same_as_bare(sys.executable, path)
        self.assertEqual(self.record.notes("logging")[-1]["calls"], 18)

    def test_isolated_python_is_seen_from_outside_only(self):
        self.same_as_bare(sys.executable, "-I", "-c", "print(1)")
        self.assertNotIn("python", self.record.meta("tier"))

    def test_an_existing_sitecustomize_runs(self):
        os.makedirs(os.path.join(self.folder, "site"))
        with open(os.path.join(self.folder, "site", "sitecustomize.py"), "w") as file:
            file.write("print('mine', __name__, __file__[-16:])\n")
        done = self.observed(
            sys.executable,
            "-c",
            "import sitecustomize; print(sitecustomize.__file__[-16:])",
            PYTHONPATH=os.path.join(self.folder, "site"),
        )
        self.assertEqual(
            done.stdout, "mine sitecustomize sitecustomize.py"[:-16] + "sitecustomize.py\nsitecustomize.py\n"
        )

    def test_uncaught_and_printed_exceptions(self):
        code = (
            "import traceback\ntry: 1 / 0\nexcept Exception: traceback.print_exc()\nraise KeyError('lost')\n"
        )
        path = os.path.join(self.folder, "fails.py")
        with open(path, "w") as file:
            file.write(code)
        self.same_as_bare(sys.executable, path)
        self.assertEqual(
            [(note["class"], note["caught"], note["where"]) for note in self.record.notes("exception")],
            [("ZeroDivisionError", True, "fails.py:2"), ("KeyError", False, "fails.py:4")],
        )

    def test_a_torch_that_cannot_be_imported(self):
        site = os.path.join(self.folder, "site")
        os.makedirs(os.path.join(site, "torch"))
        for failure in ("OSError", "ImportError"):
            with open(os.path.join(site, "torch", "__init__.py"), "w") as file:
                file.write("raise %s('a library is missing')\n" % failure)
            command = (sys.executable, "-c", "import sys; sys.path.insert(0, %r); import torch" % site)
            self.assertIn("a library is missing", self.same_as_bare(*command).stderr)

    def test_a_broken_shim_gets_out_of_the_way(self):
        shim = os.path.join(self.folder, "shim")
        shutil.copytree(os.path.join(HERE, "..", "shim"), shim)
        with open(os.path.join(shim, "_unidle_shim", "host", "imports.py"), "a") as file:
            file.write("raise RuntimeError('broken')\n")
        done = self.observed(sys.executable, "-c", "print('works')", UNIDLE_SHIM_DIR=shim)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "works\n", ""))

    # -- with torch
    # ------------------------------------------------------------------------------------------------

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_a_training_run(self):
        self.same_as_bare(sys.executable, TRAIN, "plain")
        record = self.record
        self.assertEqual(
            record.rows("select count(*), sum(samples), max(micro_batches) from steps"), [(32, 1024, 1)]
        )
        self.assertEqual(
            record.rows(
                "select count(input_ns), count(forward_ns), count(backward_ns), count(optimizer_ns), "
                "count(loss) from steps"
            ),
            [(32, 32, 32, 32, 32)],
        )
        self.assertEqual(
            record.rows(
                "select count(*) from steps "
                "where duration_ns < input_ns + forward_ns + backward_ns + optimizer_ns"
            ),
            [(0,)],
        )
        self.assertEqual(
            record.rows("select kind, count(*), sum(samples) from spans group by kind order by kind"),
            [("checkpoint", 1, 0), ("startup", 1, 0), ("validate", 4, 1024)],
        )
        settings = record.settings()
        self.assertEqual(
            (
                settings["device"],
                settings["loader.workers"],
                settings["batch.size"],
                settings["precision.amp"],
                settings["cpu.threads"],
                settings["optimizer.fused"],
            ),
            ("cpu", "0", "32", "off", "1", "false"),
        )
        loaders = {note["use"]: note for note in record.notes("loader")}
        self.assertEqual(
            (loaders["train"]["epochs"], loaders["validate"]["epochs"], loaders["train"]["in_memory"]),
            (4, 4, True),
        )
        self.assertEqual(record.notes("model")[-1]["parameters"], 577)
        self.assertEqual(record.notes("samples")[-1]["count"], 1024)
        self.assertEqual(record.one("select sum(samples) from sample_work"), 2048)

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_a_loop_of_its_own(self):
        for mode, optimizers in (("optimizer", 48), ("by-hand", 0)):
            with self.subTest(mode):
                self.same_as_bare(sys.executable, os.path.join(HERE, "programs", "words.py"), mode)
                self.assertEqual(
                    self.record.rows(
                        "select count(*), sum(samples), max(micro_batches), count(optimizer_ns), count(loss) "
                        "from steps"
                    ),
                    [(48, 192, 1, optimizers, 48)],
                )
                self.assertEqual(
                    self.record.rows("select count(*), sum(samples) from spans where kind = 'validate'"),
                    [(2, 8)],
                )

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_training_in_a_thread(self):
        done = self.same_as_bare(sys.executable, os.path.join(HERE, "programs", "threaded.py"))
        self.assertEqual(done.returncode, 0)
        record = self.record
        self.assertEqual(
            record.rows("select count(*), count(backward_ns), count(optimizer_ns), count(loss) from steps"),
            [(32, 32, 32, 32)],
        )
        # The training process is known from the first backward pass on.
        self.assertEqual(
            record.rows(
                "select count(*), sum(samples) from steps where idx > 0 and input_ns > 0 and forward_ns > 0"
            ),
            [(31, 248)],
        )
        self.assertEqual((record.settings()["loader.workers"], record.settings()["batch.size"]), ("0", "8"))
        self.assertEqual(len(record.notes("optimizer")), 1)

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_a_layer_that_is_never_called_keeps_nothing_of_ours(self):
        done = self.same_as_bare(sys.executable, os.path.join(HERE, "programs", "words.py"), "spare")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_each_rank_tells_of_itself(self):
        self.observed(
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc_per_node",
            "2",
            os.path.join(HERE, "programs", "ranks.py"),
            "1",
        )
        self.assertEqual(
            self.record.rows("select count(*), sum(samples) from steps group by process"), [(40, 320)] * 2
        )
        # Told again once the settings of the exchange are known.
        self.assertEqual(
            {note["rank"] for note in self.record.notes("parallel") if note["kind"] == "ddp"}, {0, 1}
        )
        wait_s = {note["rank"]: note["wait_seconds"] for note in self.record.notes("rank")}
        self.assertGreater(wait_s[0], 4 * wait_s.get(1, 0))

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_workers_of_both_kinds(self):
        for method in ("fork", "spawn"):
            with self.subTest(method):
                self.observed(sys.executable, TRAIN, "workers", method)
                # A worker that lives longer than a second notes itself again.
                self.assertEqual(
                    self.record.one(
                        "select count(distinct process) from notes "
                        "where json_extract(body, '$.type') = 'shim' "
                        "and json_extract(body, '$.role') = 'worker'"
                    ),
                    4,
                )
                self.assertEqual(self.record.one("select sum(samples) from sample_work"), 512)
                self.assertEqual(self.record.notes("loader_start")[-1]["count"], 2)
                self.assertEqual(self.record.one("select count(distinct process) from steps"), 1)

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_modes_of_the_program_see_nothing_of_ours(self):
        done = self.same_as_bare(sys.executable, os.path.join(HERE, "programs", "modes.py"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({note["status"] for note in self.record.notes("shim")}, {"on"})
        self.assertTrue(self.record.notes("padding"))
        self.assertTrue(any("again" in note for note in self.record.notes("samples")))

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_tracebacks_and_stacks_that_a_program_takes_apart(self):
        done = self.same_as_bare(sys.executable, os.path.join(HERE, "programs", "tracebacks.py"))
        self.assertEqual((done.returncode, done.stderr.count("in fetch") > 3), (0, True), done.stderr)

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_tracebacks_are_the_programs_own(self):
        done = self.same_as_bare(sys.executable, TRAIN, "error")
        self.assertEqual(done.returncode, 1)
        with open(TRAIN) as file:
            line = next(number for number, text in enumerate(file, 1) if "net(a) - b" in text)
        self.assertTrue(self.record.notes("exception")[0]["where"].endswith("train.py:%d" % line))

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_warnings_name_the_same_lines(self):
        self.assertIn("Warning", self.same_as_bare(sys.executable, TRAIN, "warning").stderr)

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_closed_descriptors_do_no_harm(self):
        self.same_as_bare(sys.executable, TRAIN, "closed")
        self.assertEqual(self.record.one("select count(*) from steps"), 8)

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_a_killed_program_keeps_its_steps(self):
        self.assertEqual(self.observed(sys.executable, TRAIN, "killed").returncode, 137)
        self.assertEqual(self.record.one("select count(*) from steps"), 24)

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_steps_and_apply(self):
        done = self.observed(
            sys.executable,
            TRAIN,
            "many",
            options=[
                "--steps",
                "20",
                "--apply",
                "loader.workers=1",
                "--apply",
                "cpu.threads=2",
                "--apply",
                "optimizer.fused=true",
                "--apply",
                "batch.size=64",
            ],
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.record.one("select count(*) from steps"), 20)
        applied = {note["knob"]: note["status"] for note in self.record.notes("apply")}
        from torch import __version__ as version

        fuses = tuple(map(int, version.split(".")[:2])) >= (
            2,
            4,
        )  # older ones have no fused optimiser for a CPU
        self.assertEqual(
            applied,
            {
                "loader.workers": "taken",
                "cpu.threads": "taken",
                "optimizer.fused": "taken" if fuses else "refused",
                "batch.size": "refused",
            },
        )

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_a_shim_that_fails_at_torch_says_so(self):
        shim = os.path.join(self.folder, "shim")
        shutil.copytree(os.path.join(HERE, "..", "shim"), shim)
        with open(os.path.join(shim, "_unidle_shim", "patches", "model_calls.py"), "a") as file:
            file.write("\ndef now():\n    raise RuntimeError('broken')\n")
        bare = self.bare(sys.executable, TRAIN, "plain")
        done = self.observed(sys.executable, TRAIN, "plain", UNIDLE_SHIM_DIR=shim)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, bare.stdout, ""))
        reasons = [note["reason"] for note in self.record.notes("shim") if note["status"] == "off"]
        self.assertEqual(len(reasons), 1)
        self.assertTrue(reasons[0].startswith("RuntimeError: broken (model_calls.py:"))


if __name__ == "__main__":
    unittest.main()
