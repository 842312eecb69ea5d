"""What attacks by kill -9 have in common: some processes work on one thing, one of them is killed at a random
moment, another takes its place, and now and then, with nobody at work, the thing is looked at.
"""

import argparse
import collections
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import package

CHECK_EVERY = 50  # kills
LONGEST_S = 120  # of what must not hang
WRONG = 3  # exit code of a child that was served something wrong


class Attack:
    """On what lies in `folder`. This process never opens it: children would share its memory."""

    at_once = 4  # processes
    pause_s = 0.1  # between two kills, at most
    may_end = False  # whether a process may end by itself

    def __init__(self, folder, seed):
        self.folder, self.draw = folder, random.Random(seed)
        self.children = {}  # pid -> what it does
        self.killed, self.ended, self.faults = collections.Counter(), collections.Counter(), []

    # What an attack is made of:

    def next_work(self):
        """What the next process does: a name, and a function."""
        raise NotImplementedError

    def after_a_kill(self):
        """While the others go on."""

    def settle(self):
        """After all were killed, before a look."""

    def looks(self):
        """By name, functions that look at it in a process of their own, and raise what is wrong."""
        raise NotImplementedError

    def told(self):
        """A line about how it went."""
        return ""

    # How it goes:

    @staticmethod
    def child(work):
        try:
            signal.alarm(LONGEST_S)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(WRONG)

    def fork(self, work):
        pid = os.fork()
        if pid == 0:
            self.child(work)
        return pid

    def alone(self, work):
        """The exit code of a process that does it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.fork(work), 0)[1])

    def start(self):
        name, work = self.next_work()

        def silently():
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            work()

        self.children[self.fork(silently)] = name

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        name = self.children.pop(pid)
        if status == -signal.SIGKILL:
            self.killed[name] += 1
            return
        self.ended[name] += 1
        if status != 0 or not self.may_end:
            self.faults.append(f"{name} ended with {status}")

    def run(self, kills):
        checked = 0
        while self.kills() < kills:
            while len(self.children) < self.at_once:
                self.start()
            time.sleep(self.draw.random() ** 2 * self.pause_s)
            self.kill(self.draw.choice(sorted(self.children)))
            self.after_a_kill()
            if self.kills() >= checked + CHECK_EVERY:
                checked += CHECK_EVERY
                self.check()
        self.check()

    def kills(self):
        return sum(self.killed.values())

    def check(self):
        for pid in sorted(self.children):
            self.kill(pid)
        self.settle()
        for name, look in self.looks().items():
            if self.alone(look) != 0:
                self.faults.append(f"{name}: see above")


def main(attack_of, description):
    """`attack_of(folder, seed)`. The exit code is 1 when anything was wrong."""
    arguments = argparse.ArgumentParser(description=description.split("\n")[0])
    arguments.add_argument("--kills", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=None)
    arguments = arguments.parse_args()
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    with tempfile.TemporaryDirectory() as folder:
        attack = attack_of(folder, seed)
        attack.run(arguments.kills)
        print(f"{attack.kills()} kills (seed {seed}): {dict(sorted(attack.killed.items()))}; {attack.told()}")
    for fault in attack.faults:
        print(f"WRONG: {fault}")
    return 1 if attack.faults else 0


def check_shortly(test, script, kills=60):
    """Fails the test where a short run of the script beside this one finds anything wrong."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).parent / script), "--kills", str(kills)]
    environment = {**os.environ, "UNIDLE_BIN": str(package.BUILD / "bin")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    test.assertGreaterEqual(int(done.stdout.split()[0]), kills, done.stdout)
