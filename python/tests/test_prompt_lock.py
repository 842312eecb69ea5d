"""How the stack sampler takes Python's lock: programs in each Python here, without torch."""

import itertools
import os
import subprocess
import sys
import threading
import types
import unittest
import unittest.mock

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim")
sys.path.insert(0, SHIM)

from _unidle_shim.facts import stack_sampler  # noqa: E402
from guarding import LIBRARY  # noqa: E402
from run_case import PYTHONS  # noqa: E402

# Calls that keep Python's lock, in turn with one that releases it, as torch's do: a thread that only waits
# for the lock always sees the latter. Times are those of the CPU. Then a fork, and the end of Python.
LOCKED = """
import hashlib, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from _unidle_shim.facts import stack_sampler
from _unidle_shim.host import threads

names, data, until = [], bytes(1000000), time.monotonic() + 2
held = {"locked": [], "released": []}
class Looks(stack_sampler.Background):
    def _look(self, stack):
        for name in [code.co_name for code, _ in stack if code.co_name in held][:1]:
            names.append(name)
            if self.held is not None:
                held[name].append(bool(self._is_held()))

class state:
    thread = threading.get_ident()
    background = loop = None
    class facts:
        write = staticmethod(lambda: None)

def locked():
    begin = time.thread_time()
    while time.thread_time() < begin + 1e-3:
        pass

def released():
    hashlib.sha256(data).digest()

before = sys.getswitchinterval()
state.background = Looks(state)
state.background.rate_hz = 100
state.background.start()
took = {locked: 0, released: 0}
while time.monotonic() < until:
    for call in took:
        begin = time.thread_time()
        call()
        took[call] += time.thread_time() - begin
child = os.fork()
if child == 0:
    os._exit(3)
assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 3
prompt = state.background.prompt is not None
assert state.background.stop() and sys.getswitchinterval() == before
print(prompt, names.count("locked") / len(names), took[locked] / sum(took.values()))
print(*(sum(looks) / max(1, len(looks)) for looks in held.values()))
"""
# The same in another thread than the main one, the only one that Py_AddPendingCall interrupts.
IN_THREAD = """
import threading
one = threading.Thread(target=exec, args=(%r, {}))
one.start()
one.join()
"""
# A program that saves the switch interval, changes it and restores it, while the sampler asks for the lock.
RESTORED = """
import sys, time
sys.path.insert(0, sys.argv[1])
from _unidle_shim.host import native, threads

before, until = sys.getswitchinterval(), time.monotonic() + 0.5
library = native.library()
if library.allow_prompt_lock(True):
    def look():
        while time.monotonic() < until:
            library.sleep_then_take(0.0005)
            library.go_on()
    threads.start_thread(look)
while time.monotonic() < until:
    saved = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    sum(range(100))
    sys.setswitchinterval(saved)
library.allow_prompt_lock(False)
assert sys.getswitchinterval() == before, sys.getswitchinterval()
"""

CHANGED_FOR_A_MOMENT = """
import sys
sys.path.insert(0, sys.argv[1])
from _unidle_shim.host import native

before, library = sys.getswitchinterval(), native.library()
library.allow_prompt_lock(True)
sys.setswitchinterval(1e-6)
library.sleep_then_take(0.0005)  # the first look
assert sys.getswitchinterval() == 1e-6, sys.getswitchinterval()
if sys.version_info < (3, 12):
    sys.setswitchinterval(1.1e-5)  # ours, which the program may have read
else:
    sys.setswitchinterval(before)
library.allow_prompt_lock(False)
assert sys.getswitchinterval() == before, sys.getswitchinterval()
"""

# How many looks wait for the lock as any thread does, after one call has kept it for long, as garbage
# collection does.
KEPT_ONCE = """
import sys, time
sys.path.insert(0, sys.argv[1])
from _unidle_shim.host import native, threads

library, looks = native.library(), []
library.allow_prompt_lock(True)
def look():
    while library is not None:
        looks.append(library.sleep_then_take(0.002))
        library.go_on()
threads.start_thread(look)
def runs(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(100))
runs(0.1)
numbers = [list(range(4_000_000)) for _ in range(2)]
begin, before = time.monotonic(), len(looks)
while time.monotonic() - begin < 0.1 or len(looks) == before:
    numbers[0] == numbers[1]
before = len(looks)
while len(looks) < before + 300:
    runs(0.01)
library.allow_prompt_lock(False)
print(looks[before:before + 300].count(None))
"""


class Lock(unittest.TestCase):
    def shares(self, python, library, program=LOCKED):
        """Whether the lock is taken at once, the share of the looks and of the time in locked(), and the
        share of the looks in either function that found the lock held."""
        result = subprocess.run(
            [python, "-c", program, SHIM],
            env={**os.environ, "UNIDLE_LIGHT_LIBRARY": library},
            stdout=subprocess.PIPE,
            check=True,
            universal_newlines=True,
        )
        return result.stdout.split()

    def test_code_that_keeps_pythons_lock_is_seen(self):
        if not os.path.isfile(LIBRARY):
            self.skipTest("the shim's part in C++ is not built")
        programs = [(python, LOCKED) for python in PYTHONS]
        programs += [(python, IN_THREAD % LOCKED) for python in PYTHONS[-2:]]
        for python, program in programs:
            with self.subTest(python, in_thread=program is not LOCKED):
                for _ in range(3):  # others may keep the sampler from a CPU for most of a run
                    prompt, looks, time_s, held, free = self.shares(python, LIBRARY, program)
                    if float(looks) > 0.5 * float(time_s) and float(held) > 0.7:
                        break
                self.assertEqual(prompt, "True")
                self.assertGreater(float(held), 0.7)
                self.assertLess(float(free), 0.5 * float(held))
                self.assertGreater(float(looks), 0.5 * float(time_s), "a waiting thread sees none")
                self.assertLess(float(looks), 1.5 * float(time_s))

    def test_one_long_wait_costs_few_of_the_looks_after_it(self):
        if not os.path.isfile(LIBRARY):
            self.skipTest("the shim's part in C++ is not built")
        for python in PYTHONS:
            with self.subTest(python):
                waited = int(self.shares(python, LIBRARY, KEPT_ONCE)[0])
                if waited >= 100:  # others kept the sampler from a CPU
                    waited = int(self.shares(python, LIBRARY, KEPT_ONCE)[0])
                self.assertLess(waited, 100, "of 300")

    def test_the_programs_switch_interval_stays(self):
        if not os.path.isfile(LIBRARY):
            self.skipTest("the shim's part in C++ is not built")
        for python, program in itertools.product(PYTHONS, (RESTORED, CHANGED_FOR_A_MOMENT)):
            with self.subTest(python):
                environment = {**os.environ, "UNIDLE_LIGHT_LIBRARY": LIBRARY}
                subprocess.run([python, "-c", program, SHIM], env=environment, check=True)

    def test_where_only_the_main_thread_is_interrupted_others_are_not_judged(self):
        for main_only, thread, held in (
            (True, threading.get_ident(), True),
            (True, 1, None),
            (False, 1, True),
        ):
            background = stack_sampler.Background(types.SimpleNamespace(thread=thread))
            background.prompt = types.SimpleNamespace(sleep_then_take=lambda seconds: True)
            with unittest.mock.patch.object(stack_sampler, "_INTERRUPTS_MAIN_ONLY", main_only):
                background._sleep(0)
            self.assertIs(background.held, held)

    def test_without_the_part_in_cpp_looks_are_taken_as_well(self):
        prompt, looks, *_ = self.shares(sys.executable, "")
        self.assertEqual(prompt, "False")
        self.assertGreaterEqual(float(looks), 0)


if __name__ == "__main__":
    unittest.main()
