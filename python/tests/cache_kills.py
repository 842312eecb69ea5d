"""kill -9 of processes at a feature cache, at random points of putting (one or many), computing, evicting,
pruning, rebuilding the index and warming: is every entry right, are stored entries still there, and have the
predictors of killed processes ended?

    UNIDLE_BIN=build/bin python3 python/tests/cache_kills.py --kills 1000

Two caches: nothing is ever removed from `kept`, so it must have all stored entries; `bounded` evicts all the
time. Prints the counts; the exit code is 1 if anything was wrong.
"""

import functools
import json
import os
import random
import subprocess
import sys
import time

import killing
import numpy as np
import package

import unidle

UNIDLE = os.path.join(os.environ.get("UNIDLE_BIN", str(package.BUILD / "bin")), "unidle")
NAMES = 400
BOUND = 2_000_000  # bytes; about a quarter of all entries

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
    """The contents of the entry with that number."""
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
        os._exit(killing.WRONG)
    os.write(log, b"%d\n" % number)


def reads(cache, draw, log):
    number = draw.randrange(NAMES)
    found = cache.get(str(number))
    if found is not None and not is_right(number, found):
        os._exit(killing.WRONG)


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
    # The program's arguments include the attack's folder, by which its processes are found.
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


class CacheAttack(killing.Attack):
    pause_s = 0.12
    may_end = True

    def __init__(self, folder, seed):
        super().__init__(folder, seed)
        with open(os.path.join(folder, "peptides.txt"), "w") as file:
            for _ in range(300):
                length = self.draw.randrange(5, 30)
                file.write("".join(self.draw.choices("ACDEFGHIKLMNPQRSTVWY", k=length)) + "\n")
        made = [
            self.alone(lambda: unidle.Cache(self.path("bounded"), max_bytes=BOUND)),
            self.alone(lambda: unidle.Cache(self.path("kept"))),
        ]
        if any(made):
            self.faults.append("the caches could not be made")

    def path(self, cache):
        return os.path.join(self.folder, cache)

    def next_work(self):
        cache = self.draw.choice(sorted(WORKS))
        name = self.draw.choice(sorted(WORKS[cache]))
        seed = self.draw.random()
        return f"{cache} {name}", lambda: WORKS[cache][name](self.path(cache), random.Random(seed))

    def settle(self):
        deadline = time.monotonic() + 30
        while (left := self.predictors()) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.faults += [f"predictor {pid} is left" for pid in left]

    def looks(self):
        return {cache: functools.partial(self.look, cache) for cache in sorted(WORKS)}

    def told(self):
        entries = {cache: self.command("stats", cache)["entries"] for cache in sorted(WORKS)}
        return f"{sum(self.ended.values())} ended by themselves; entries at the end: {entries}"

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
        for number in range(0, NAMES, 97):  # no killed process holds a claim
            opened[str(number)] = values(number)

    def predictors(self):
        """Running processes of PREDICTOR, whoever started them."""
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


if __name__ == "__main__":
    sys.exit(killing.main(CacheAttack, __doc__))
