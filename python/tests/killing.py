"""Common parts of attacks by kill -9: several processes work on one object, one of them is killed at a random
moment, another replaces it, and now and then, with all processes stopped, the object is inspected."""

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
LONGEST_S = 120  # for operations that must not hang
WRONG = 3  # exit code of a child that received wrong data


class Attack:
    """An attack on data in `folder`. This process never opens it: children would share its memory."""

    at_once = 4  # processes
    pause_s = 0.1  # between two kills, at most
    may_end = False  # whether a process may end by itself

    def __init__(self, folder, seed):
        self.folder, self.draw = folder, random.Random(seed)
        self.children = {}  # pid -> its work
        self.killed, self.ended, self.faults = collections.Counter(), collections.Counter(), []

    # Defined by each attack:

    def next_work(self):
        """The work of the next process: a name, and a function."""
        raise NotImplementedError

    def after_a_kill(self):
        """Called while the others continue."""

    def settle(self):
        """Called after all were killed, before an inspection."""

    def looks(self):
        """By name, functions that inspect the data in a separate process, and raise on errors."""
        raise NotImplementedError

    def told(self):
        """A line about the course of the attack."""
        return ""

    # The attack itself:

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
        """The exit code of a separate process that does the work."""
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
    """`attack_of(folder, seed)`. The exit code is 1 if anything was wrong."""
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
    """Fails the test if a short run of the script beside this one finds anything wrong."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).parent / script), "--kills", str(kills)]
    environment = {**os.environ, "UNIDLE_BIN": str(package.BUILD / "bin")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    test.assertGreaterEqual(int(done.stdout.split()[0]), kills, done.stdout)
