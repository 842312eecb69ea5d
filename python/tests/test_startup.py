"""Start-up names the program's function, or its import statement, in which the time passes."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "shim")]

import run_case  # noqa: E402
from _unidle_shim.host import places, startup  # noqa: E402

SLOWLY = """
import __main__
import time

END = time.monotonic() + __main__.at_least_half()
while time.monotonic() < END:
    sum(range(1000))
"""


def frame(name, function="<module>", line=1):
    """(code, line) of a module or a function, as if it were in that file."""
    code = compile("pass", name, "exec")
    return code.replace(
        co_name=function, **({"co_qualname": function} if hasattr(code, "co_qualname") else {})
    ), line


class Places(unittest.TestCase):
    loads = frame("<frozen importlib._bootstrap>", "_find_and_load")
    ours = frame(places.MARK + "/host/imports.py>", "exec_module")
    package = frame("/venv/lib/python3.11/site-packages/big/__init__.py")
    nested = frame("/venv/lib/python3.11/site-packages/small.py")

    def of_start(self, *stack):
        found = places.of_start(list(stack))
        return found and (found[0] and os.path.basename(found[0]), *found[1:])

    def test_an_import_counts_for_its_outermost_statement(self):
        train, models = frame("/job/train.py", line=3), frame("/job/models.py", line=7)
        for inner in ([], [self.loads], [self.nested, self.loads], [self.nested, self.ours, self.loads]):
            stack = [*inner, self.package, self.ours, self.loads, train]
            self.assertEqual(self.of_start(*stack), ("train.py:3", "import big", None))
        self.assertEqual(
            self.of_start(self.package, self.loads, models, self.loads, train),
            ("train.py:3", "import big", None),
        )

    def test_an_import_within_a_function_counts_for_its_line(self):
        main, train = frame("/job/train.py", "main", 12), frame("/job/train.py", line=40)
        self.assertEqual(
            self.of_start(self.package, self.loads, main, train), ("train.py:12", "import big", None)
        )

    def test_what_a_function_of_a_package_imports_is_a_call_of_it(self):
        call, main = frame("/venv/site-packages/big/load.py", "load"), frame("/job/train.py", "main", 12)
        self.assertEqual(self.of_start(self.package, self.loads, call, main), ("train.py:12", "main", None))

    def test_a_function_with_the_one_that_calls_it(self):
        read, main = frame("/job/data.py", "read", 5), frame("/job/train.py", "main", 12)
        found = self.of_start(self.nested, read, main)
        self.assertEqual(found[:2], ("data.py:5", "read"))
        self.assertTrue(found[2].startswith("main (") and found[2].endswith("train.py:12)"), found)
        self.assertIsNone(self.of_start(self.loads))

    def test_ours_is_no_import(self):
        main = frame("/job/train.py", "main", 12)
        self.assertEqual(self.of_start(self.ours, main), ("train.py:12", "main", None))


class Watch(unittest.TestCase):
    def test_no_thread_is_there_while_the_program_forks_and_then_it_goes_on(self):
        def threads():
            return len(os.listdir("/proc/self/task"))

        before = threads()
        startup.begin()
        self.addCleanup(startup.end)
        self.assertGreater(threads(), before)
        startup._pause()
        self.assertEqual(threads(), before)
        startup._go_on()
        self.assertGreater(threads(), before)
        for forks in range(2, startup._MOST_FORKS + 3):
            child = os.fork()
            if not child:
                os._exit(0 if startup._watch is None else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(startup._watch.running, forks <= startup._MOST_FORKS)
        self.assertIsInstance(startup.end(), dict)
        self.assertEqual(startup.end(), {})


@unittest.skipUnless(run_case.HAS_TORCH, "this Python has no torch")
@unittest.skipUnless(os.path.exists(run_case.UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class StartupTest(run_case.DiagnosedCase):
    def setUp(self):
        super().setUp()
        with open(os.path.join(HERE, "programs", "starts.py")) as file:
            self.lines = file.read().splitlines()

    def lines_of(self, name):
        """The numbers of the lines of a function."""
        begin = self.lines.index("def %s(seconds):" % name) + 1
        return range(begin, begin + self.lines[begin:].index("") + 1)

    def finding(self, kind, **more):
        return self.diagnosed("starts.py", kind, **more)["startup-dominates"]

    def is_in(self, finding, name):
        file, line = finding["where"].rsplit(":", 1)
        self.assertEqual(os.path.basename(file), "starts.py")
        self.assertIn(int(line), self.lines_of(name))
        self.assertTrue(any(" in %s (" % name in line for line in finding["evidence"]), finding)

    def test_a_function_before_torch_is_imported(self):
        self.diagnosed("starts.py", "before")
        looks = [note for note in self.record.notes("hot") if note["function"] == "read_all"]
        at_end = {(note["where"], note["hits"]) for note in looks[-len({note["where"] for note in looks}) :]}
        self.assertGreater(sum(hits for _, hits in at_end), 40, "of 80 in four seconds")

    def test_a_function_and_its_caller(self):
        for kind in ("after", "forks"):
            with self.subTest(kind):
                finding = self.finding(kind)
                self.is_in(finding, "read_all")
                self.assertTrue(any("called by prepare" in line for line in finding["evidence"]), finding)

    def test_an_import(self):
        site = os.path.join(self.folder, "site-packages")
        os.makedirs(site)
        with open(os.path.join(site, "slowly.py"), "w") as file:
            file.write(SLOWLY)
        finding = self.finding("import", PYTHONPATH=site)
        self.assertTrue(any(" in import slowly (" in line for line in finding["evidence"]), finding)
        (number,) = [n for n, line in enumerate(self.lines, 1) if "import slowly" in line]
        self.assertTrue(finding["where"].endswith("starts.py:%d" % number), finding)


if __name__ == "__main__":
    unittest.main()
