"""kill -9 of processes at a feature cache, at random points of putting (one or many), computing, evicting,
pruning, making the index anew and warming: is every entry right, is what was stored still there, and are the
predictors of those that were killed gone?

    UNIDLE_BIN=build/bin python3 python/tests/cache_kills.py --kills 1000

Two caches: of `kept` nothing is ever removed, so that it must have all that was stored; `bounded` evicts all
the time. Prints the counts; the exit code is 1 when anything was wrong.
"""

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np
import package

import unidle

UNIDLE = os.path.join(os.environ.get("UNIDLE_BIN", str(package.BUILD / "bin")), "unidle")
NAMES = 400
BOUND = 2_000_000  # bytes; about a quarter of all entries
AT_ONCE = 4
CHECK_EVERY = 50
LONGEST_S = 120  # of what must not hang
WRONG = 3  # exit code of a child that read something wrong

PREDICTOR = r"""
import json, struct, sys, time

source, sink = sys.stdin.buffer, sys.stdout.buffer


def read():
    _, head_bytes, data_bytes = struct.unpack("<4sIQ", source.read(16))
    return json.loads(source.read(head_bytes)), source.read(data_bytes)


def write(head, data=b""):
    text = json.dumps(head).encode()
    sink.write(struct.pack("<4sIQ", b"UPP1", len(text), len(data)) + text + data)
    sink.flush()


read()
write({"type": "ready", "protocol": 1, "identity": "letters", "version": "1"})
while True:
    head, data = read()
    if data.startswith(b"W"):  # some keep it busy for long: its input may have ended meanwhile
        time.sleep(1000)
    items = [{"tensors": [{"name": "x", "dtype": "uint8", "shape": [size]}]} for size in head["lengths"]]
    write({"type": "result", "batch": head["batch"], "items": items}, data)
"""


def values(number):
    """What the entry of that number holds."""
    rng = np.random.default_rng(number)
    return {"a": rng.integers(0, 256, 200 + number * 37, dtype=np.uint8), "n": np.array([number])}


def is_right(number, arrays):
    wanted = values(number)
    return set(arrays) == set(wanted) and all(np.array_equal(arrays[name], wanted[name]) for name in wanted)


def puts(cache, draw, log):
    number = draw.randrange(NAMES)
    cache[str(number)] = values(number)
    os.write(log, b"%d\n" % number)


def updates(cache, draw, log):
    numbers = draw.sample(range(NAMES), draw.randrange(1, 60))
    cache.update((str(number), values(number)) for number in numbers)
    os.write(log, b"".join(b"%d\n" % number for number in numbers))


def computes(cache, draw, log):
    number = draw.randrange(NAMES)
    if not is_right(number, cache.get_or_compute(str(number), lambda: values(number))):
        os._exit(WRONG)
    os.write(log, b"%d\n" % number)


def reads(cache, draw, log):
    number = draw.randrange(NAMES)
    found = cache.get(str(number))
    if found is not None and not is_right(number, found):
        os._exit(WRONG)


def runs(*arguments):
    def run(folder, draw):
        os.execv(UNIDLE, [UNIDLE, "cache", *arguments[:1], folder, *arguments[1:]])

    return run


def loses_the_index(folder, draw):
    for name in ("index-2.db", "index-2.db-wal", "index-2.db-shm")[: draw.choice((1, 3))]:
        try:
            os.unlink(os.path.join(folder, "v1", name))
        except FileNotFoundError:
            pass
    runs("verify")(folder, draw)


def warms(*predictor):
    def run(folder, draw):
        inputs = os.path.join(folder, "..", "peptides.txt")
        runs("warm", "--inputs", inputs, "--workers", "2", "--tokens", "30", *predictor)(folder, draw)

    return run


def warms_by_program(folder, draw):
    # Among the words of the program is the folder of the attack, by which it is found again.
    warms("--", sys.executable, "-S", "-E", "-c", PREDICTOR, os.path.dirname(folder))(folder, draw)


def repeats(work):
    def run(folder, draw):
        cache = unidle.Cache(folder, durable=draw.random() < 0.5)
        log = os.open(folder + ".stored", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        while True:
            work(cache, draw, log)

    return run


COMMON = {
    "put": repeats(puts),
    "update": repeats(updates),
    "compute": repeats(computes),
    "read": repeats(reads),
}
WORKS = {
    "kept": {
        **COMMON,
        "rebuild": loses_the_index,
        "warm": warms("--predictor", "peptide"),
        "predict": warms_by_program,
    },
    "bounded": {**COMMON, "prune": runs("prune", "--max-bytes", "500kB"), "rebuild": loses_the_index},
}


class Attack:
    def __init__(self, folder, seed):
        self.folder, self.draw = folder, random.Random(seed)
        self.children = {}  # pid -> (cache, work)
        self.killed, self.ended, self.faults = collections.Counter(), collections.Counter(), []
        with open(os.path.join(folder, "peptides.txt"), "w") as file:
            for _ in range(300):
                file.write(
                    "".join(self.draw.choices("ACDEFGHIKLMNPQRSTVWY", k=self.draw.randrange(5, 30))) + "\n"
                )
        if self.fork(lambda: unidle.Cache(self.path("bounded"), max_bytes=BOUND)) != 0:
            self.faults.append("the caches could not be made")
        self.fork(lambda: unidle.Cache(self.path("kept")))

    def path(self, cache):
        return os.path.join(self.folder, cache)

    def fork(self, work):
        """The exit code of a process of its own: this one never opens a cache, which children would share."""
        pid = os.fork()
        if pid == 0:
            self.child(work)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    @staticmethod
    def child(work):
        try:
            signal.alarm(LONGEST_S)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def start(self):
        cache = self.draw.choice(sorted(WORKS))
        work = self.draw.choice(sorted(WORKS[cache]))
        seed = self.draw.random()
        pid = os.fork()
        if pid == 0:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            run = WORKS[cache][work]
            self.child(lambda: run(self.path(cache), random.Random(seed)))
        self.children[pid] = cache, work

    def kill(self, pid):
        """Whether it was killed, and had not ended before."""
        os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        name = " ".join(self.children.pop(pid))
        if status == -signal.SIGKILL:
            self.killed[name] += 1
            return True
        self.ended[name] += 1
        if status != 0:
            self.faults.append(f"{name} ended with {status}")
        return False

    def run(self, kills):
        checked = 0
        while sum(self.killed.values()) < kills:
            while len(self.children) < AT_ONCE:
                self.start()
            time.sleep(self.draw.random() ** 2 * 0.12)
            self.kill(self.draw.choice(sorted(self.children)))
            if sum(self.killed.values()) >= checked + CHECK_EVERY:
                checked += CHECK_EVERY
                self.check()
        self.check()

    def check(self):
        for pid in list(self.children):
            self.kill(pid)
        deadline = time.monotonic() + 30
        while (left := self.predictors()) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.faults += [f"predictor {pid} is left" for pid in left]
        for cache in sorted(WORKS):
            if self.fork(lambda: self.look(cache)) != 0:
                self.faults.append(f"{cache}: see above")

    def look(self, cache):
        verified = self.command("verify", cache)
        assert verified["damaged"] == 0, verified
        before = self.command("stats", cache)
        opened = unidle.Cache(self.path(cache))
        names = set(opened)
        for name in names:
            arrays = opened.get(name)
            assert arrays is None or is_right(int(name), arrays), f"{cache}: entry {name} is wrong"
        assert cache == "bounded" or names >= self.stored(cache), "an entry that was stored is gone"
        assert cache == "kept" or before["bytes"] <= BOUND, before
        blobs = os.path.join(self.path(cache), "v1", "blobs")
        files = sum(len(files) for _, _, files in os.walk(blobs))
        assert files == before["entries"], f"{files} files, {before}"
        for number in range(0, NAMES, 97):  # nobody who was killed holds a claim
            opened[str(number)] = values(number)

    def predictors(self):
        """Processes of PREDICTOR that run, whoever started them."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:  # it has ended
                continue
            if len(words) > 5 and words[3] == b"-c" and words[5] == self.folder.encode():
                found.append(pid)
        return found

    def stored(self, cache):
        try:
            with open(self.path(cache) + ".stored") as file:
                return set(file.read().split())
        except FileNotFoundError:
            return set()

    def command(self, name, cache):
        command = [UNIDLE, "cache", name, self.path(cache), "--format", "json"]
        return json.loads(subprocess.run(command, capture_output=True, check=False).stdout)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--kills", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=None)
    arguments = arguments.parse_args()
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    with tempfile.TemporaryDirectory() as folder:
        attack = Attack(folder, seed)
        attack.run(arguments.kills)
        entries = {cache: attack.command("stats", cache)["entries"] for cache in sorted(WORKS)}
    print(f"{sum(attack.killed.values())} kills (seed {seed}): {dict(sorted(attack.killed.items()))}")
    print(f"ended by themselves: {sum(attack.ended.values())}; entries at the end: {entries}")
    for fault in attack.faults:
        print(f"WRONG: {fault}")
    return 1 if attack.faults else 0


if __name__ == "__main__":
    sys.exit(main())
