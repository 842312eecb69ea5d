"""Start-up names the program's function, or its import statement, in which the time passes."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "shim")]

import run_case  # noqa: E402
from _unidle_shim.host import places, startup, threads  # noqa: E402

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
        def count():
            return len(os.listdir("/proc/self/task"))

        before = count()
        startup.begin()
        self.addCleanup(startup.end)
        self.assertGreater(count(), before)
        startup._before_fork()
        self.assertEqual(count(), before)
        startup._after_fork()
        self.assertGreater(count(), before)
        for forks in range(2, startup._MOST_FORKS + 3):
            startup._before_fork()
            child = os.fork()
            if not child:
                os._exit(1 if startup._watches else 0)
            startup._after_fork()
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(bool(startup._watches[0].running), forks <= startup._MOST_FORKS)
        self.assertIsInstance(startup.end(), dict)
        self.assertEqual(startup.end(), {})

    def test_python_warns_of_no_thread_of_ours(self):
        """With each installed Python that warns: 3.13 counts threads later than the others."""
        code = (
            "import os, sys, time, warnings; sys.path.insert(0, %r); warnings.simplefilter('always')\n"
            "from _unidle_shim.host import startup; startup.begin()\n"
            "for _ in range(3):\n"
            "    time.sleep(0.05)\n"
            "    if not os.fork(): os._exit(0)\n"
            "    os.wait()\n" % os.path.join(HERE, "..", "shim")
        )
        pythons = [sys.executable, *(shutil.which("python3.%d" % minor) for minor in (12, 13, 14))]
        for python in filter(None, pythons):
            if subprocess.run([python, "-c", ""], capture_output=True).returncode:
                continue  # a stand-in of a version that is not chosen
            with self.subTest(python):
                ran = subprocess.run([python, "-c", code], capture_output=True, text=True)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_threads_that_fork_at_once_do_not_wait_for_each_other(self):
        startup.begin()
        self.addCleanup(startup.end)

        def work():
            for _ in range(10):
                startup._before_fork()
                startup._after_fork()

        began = time.monotonic()
        several = [threading.Thread(target=work) for _ in range(4)]
        for one in several:
            one.start()
        for one in several:
            one.join()
        self.assertLess(time.monotonic() - began, 20)

    def test_an_exception_of_a_handler_within_the_hook_comes_again(self):
        class Late(Exception):
            pass

        def late(number, frame):
            raise Late

        before = signal.signal(signal.SIGUSR1, late)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        startup.begin()
        self.addCleanup(startup.end)
        with mock.patch.object(startup.Watch, "stop", lambda *_: os.kill(os.getpid(), signal.SIGUSR1)):
            with mock.patch.object(startup._thread, "interrupt_main") as again:
                startup._before_fork()
                self.assertEqual(startup._after_fork.args, (signal.SIGUSR1,))
                self.assertIs(startup._after_fork.func, again)

    def test_of_a_very_deep_stack_only_the_inner_part_is_seen(self):
        def stack(depth):
            return stack(depth - 1) if depth else threads.stack_of(threading.get_ident())

        before = sys.getrecursionlimit()
        self.addCleanup(sys.setrecursionlimit, before)
        sys.setrecursionlimit(5000)
        self.assertEqual(len(stack(3000)), threads._DEEPEST)

    def test_no_stack_is_seen_in_a_process_with_several_interpreters(self):
        self.assertTrue(threads.stack_of(threading.get_ident()))
        with mock.patch.dict(sys.modules, {threads._INTERPRETERS[0]: startup}):
            self.assertEqual(threads.stack_of(threading.get_ident()), [])


DESTRUCTORS = """
import threading
import time

MAIN, OTHERS, END = threading.get_ident(), set(), time.monotonic() + 3


class Circle:
    def __init__(self):
        self.itself = self

    def __del__(self):
        OTHERS.add(threading.get_ident() != MAIN)


def deep(depth):
    while not depth and time.monotonic() < END:
        for _ in range(50):
            Circle()
        time.sleep(0.001)
    if depth:
        deep(depth - 1)


deep(60)
print(OTHERS)
"""
RECURSION = """
import sys
import time

for limit in range(4, 40):
    try:
        sys.setrecursionlimit(limit)
        break
    except RecursionError:
        pass
time.sleep(0.7)
"""
FORKS = """
import os
import signal
import threading
import time


class Late(Exception):
    pass


def late(*_):
    raise Late


def forks(several):
    for _ in range(several):
        if not os.fork():
            os._exit(0)
        os.wait()


signal.signal(signal.SIGALRM, late)
came = 0
for number in range(100):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0002 + 0.00001 * (number % 60))
        if not os.fork():
            os._exit(0)
        time.sleep(1)
    except Late:
        came += 1
while came:
    try:
        os.wait()
    except ChildProcessError:
        break
print(came)
began, threads = time.monotonic(), [threading.Thread(target=forks, args=(20,)) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(time.monotonic() - began < 20)
"""


@unittest.skipUnless(os.path.exists(run_case.UNIDLE), "UNIDLE_BIN is not set: there is no unidle to run")
class AnyProgramTest(run_case.RunCase):
    """Programs without torch, whose start is looked at to their end."""

    def same(self, program, prints):
        path = os.path.join(self.folder, "program.py")
        with open(path, "w") as file:
            file.write(program)
        done = self.same_as_bare(sys.executable, "-B", path)
        self.assertEqual(done.stdout, prints)
        return done

    def test_destructors_run_in_the_threads_of_the_program(self):
        self.same(DESTRUCTORS, "{False}\n")

    def test_a_low_limit_of_recursion(self):
        self.same(RECURSION, "")

    def test_exceptions_of_handlers_arrive_and_threads_fork_at_once(self):
        self.same(FORKS, "100\nTrue\n")

    def test_an_interrupt_ends_the_program_by_the_signal(self):
        program = "raise KeyboardInterrupt('by key')"
        command = "%s -B -c %s; echo $?" % (shlex.quote(sys.executable), shlex.quote(program))
        done = self.same_as_bare("sh", "-c", command)
        self.assertEqual(done.stdout, "130\n")
        (note,) = self.record.notes("exception")
        self.assertEqual((note["message"], note["caught"]), ("KeyboardInterrupt: by key", False))


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
