"""The feature cache compared with common alternatives: LMDB, diskcache, joblib.Memory, shelve and SQLite.

Entries of 10 KB, each store at its best settings, interleaved: in each round every store does the same
work in a fresh process; medians over the rounds are compared. The peers get bytes, which they return
fastest (joblib and diskcache would pickle arrays). Values of LMDB are checked by CRC-32 on every read;
ours are checked when a process first opens them. "Synced": a put is on disk when it returns; joblib.Memory
and shelve do not support this and are left out. SQLite, also under diskcache, then uses synchronous=FULL,
which waits for its log at each commit (with its default, NORMAL, a power failure loses puts), LMDB sync
and metasync. "Many at once": one transaction, for stores that have them. Ours is measured in C++
(build/bench/cache_store) and, as `unidle_python`, through its Python package like the peers, which adds
some microseconds of Python. --python names a Python with the peers installed. With --json prints one
object per line.

"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("UNIDLE_BENCH", ROOT / "build" / "bench"))
OURS = BUILD / "cache_store"
# Includes our package, which is measured as another peer.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(BUILD.parent / "share" / "unidle" / "python")}

PEER = r"""
import json, os, random, sys, time, zlib
name, work, folder = sys.argv[1:4]
entries, size, operations, first, sync = (int(text) for text in sys.argv[4:9])
path = os.path.join(folder, name)
os.makedirs(path, exist_ok=True)

if name == "unidle_python":
    import numpy, unidle
    cache = unidle.Cache(path, durable=bool(sync))
    as_array = lambda value: numpy.frombuffer(value, numpy.uint8)
    put = lambda key, value: cache.__setitem__(key, {"value": as_array(value)})
    put_many = lambda pairs: cache.update((key, {"value": as_array(value)}) for key, value in pairs)
    get = lambda key: cache[key]["value"][0]
elif name == "lmdb":
    import lmdb
    durable = {"sync": bool(sync), "metasync": bool(sync)}
    env = lmdb.open(os.path.join(path, "db"), map_size=1 << 34, readahead=False, **durable)
    def put(key, value):
        with env.begin(write=True) as txn:
            txn.put(key, value)
    def put_many(pairs):
        with env.begin(write=True) as txn:
            for key, value in pairs:
                txn.put(key, value)
    def get(key):
        with env.begin(buffers=True) as txn:
            value = txn.get(key)
            return zlib.crc32(value) + value[0]
elif name == "diskcache":
    import diskcache
    cache = diskcache.Cache(path, size_limit=1 << 40, eviction_policy="none", disk_min_file_size=1 << 20,
                            sqlite_synchronous=2 if sync else 0)
    put, get = cache.set, lambda key: cache[key][0]
    def put_many(pairs):
        with cache.transact():
            for key, value in pairs:
                cache.set(key, value)
elif name == "sqlite":
    import sqlite3
    base = sqlite3.connect(os.path.join(path, "db"), isolation_level=None, timeout=60)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA mmap_size=17179869184")
    base.execute("PRAGMA synchronous=" + ("FULL" if sync else "OFF"))
    base.execute("CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
    put = lambda key, value: base.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", (key, value))
    def put_many(pairs):
        base.execute("BEGIN")
        base.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", pairs)
        base.execute("COMMIT")
    get = lambda key: base.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()[0][0]
elif name == "shelve":
    import dbm, shelve
    shelf = shelve.open(os.path.join(path, "db"), "c" if work in ("put", "many") else "r")
    put = lambda key, value: shelf.__setitem__(key.decode(), value)
    get = lambda key: shelf[key.decode()][0]
elif name == "joblib":
    import joblib
    memory = joblib.Memory(path, verbose=0)
    value_of = {}
    @memory.cache(ignore=["value"])
    def function(key, value):
        return value
    put = lambda key, value: function(key, value)
    get = lambda key: function(key, None)[0]

def key_of(number):
    return b"%064d" % number

values = [bytes([(first + i) % 251 + 1]) * size for i in range(0 if work in ("hot", "cold") else operations)]
if work == "hot":
    for number in range(entries):
        get(key_of(number))
draw = random.Random(first + 1).randrange
numbers = [first + i for i in range(operations)] if values else [
    draw(entries) if work == "hot" else i % entries for i in range(operations)]
keys = [key_of(number) for number in numbers]
start = time.perf_counter()
if work == "put":
    for key, value in zip(keys, values):
        put(key, value)
elif work == "many":
    put_many(list(zip(keys, values)))
else:
    for key in keys:
        get(key)
print(json.dumps({"us": (time.perf_counter() - start) * 1e6 / operations}))
"""


PEERS = ["unidle_python", "lmdb", "diskcache", "sqlite", "shelve", "joblib"]


def there(python, name):
    """Returns whether a peer is installed; reports it when it is not."""
    module = {"sqlite": "sqlite3", "unidle_python": "unidle, numpy"}.get(name, name)
    found = (
        subprocess.run([python, "-c", f"import {module}"], capture_output=True, env=ENVIRONMENT).returncode
        == 0
    )
    if not found:
        print(f"cache_peers: {python} has no {module}: it is left out", file=sys.stderr)
    return found


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    if result.returncode != 0:
        raise SystemExit(f"cache_peers: {' '.join(map(str, command[:4]))}: {result.stderr.strip()[-500:]}")
    return json.loads(result.stdout.splitlines()[-1])["us"]


class Contest:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder

    def command(self, name, work, operations, first, sync):
        a = self.arguments
        if name == "unidle":
            command = [OURS, work, f"{self.folder}/unidle", "--entries", a.entries, "--bytes", a.bytes]
            command += ["--operations", operations, "--first", first] + (["--sync"] if sync else [])
        else:
            command = [a.python, "-c", PEER, name, work, self.folder]
            command += [a.entries, a.bytes, operations, first, int(sync)]
        return [str(word) for word in command]

    def once(self, name, work, operations, first, sync):
        return run(self.command(name, work, operations, first, sync))

    def several(self, name, work, operations, first, sync):
        """Returns microseconds per operation over all processes; for puts, each process has its own keys."""
        processes = self.arguments.processes
        own = operations if work == "put" else 0
        commands = [
            self.command(name, work, operations, first + process * own, sync) for process in range(processes)
        ]
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
            for command in commands
        ]
        times = [json.loads(process.communicate()[0].splitlines()[-1])["us"] for process in running]
        return statistics.mean(times) / processes


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="a Python with diskcache, joblib and lmdb")
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--bytes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="unidle-bench-cache-")
    try:
        report(arguments, Contest(arguments, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report(arguments, contest):
    names = ["unidle"] + [name for name in PEERS if there(arguments.python, name)]
    for name in names:
        contest.once(name, "put", arguments.entries, 0, False)
    durable = [name for name in names if name not in ("shelve", "joblib")]
    works = [
        ("put", 300, False, names),
        ("put, synced", 50, True, durable),
        ("many at once, synced", 500, True, durable),
        ("hot get", 20_000, False, names),
        ("first get of a process", arguments.entries, False, names),
    ]
    first = {name: 10_000_000 for name in names}
    for title, operations, sync, whose in works:
        work = {"put": "put", "many": "many", "hot": "hot", "first": "cold"}[title.split()[0].strip(",")]
        times = {name: [] for name in whose}
        for _ in range(arguments.rounds):
            for name in whose:
                from_where = first[name] if work in ("put", "many") else 0
                times[name].append(
                    contest.once(name, work, count_of(name, work, operations), from_where, sync)
                )
                first[name] += operations
        tell(arguments, title, times)
    for title, work, operations, sync, whose in [
        ("put", "put", 100, False, durable),
        ("put, synced", "put", 30, True, durable),
        ("hot get", "hot", 20_000, False, names),
    ]:
        times = {name: [] for name in whose}
        for _ in range(arguments.rounds):
            for name in whose:
                count = count_of(name, work, operations)
                times[name].append(contest.several(name, work, count, first[name], sync))
                first[name] += operations * arguments.processes
        tell(arguments, f"{title}, {arguments.processes} processes", times)


def count_of(name, work, operations):
    return (
        1000 if name == "joblib" and work == "hot" else operations
    )  # joblib takes half a millisecond per operation


def tell(arguments, title, times):
    medians = {name: statistics.median(values) for name, values in times.items()}
    ours = medians.pop("unidle")
    ratios = {name: value / ours for name, value in medians.items()}
    if arguments.json:
        machine = {"cpus": os.cpu_count(), "system": platform.platform()}
        print(
            json.dumps(
                {
                    "name": f"cache {title}",
                    "unit": "us",
                    "ours": ours,
                    "peers": medians,
                    "ratio": ratios,
                    "machine": machine,
                }
            ),
            flush=True,
        )
        return
    row = "  ".join(f"{name} {value:.3g} ({ratios[name]:.1f}x)" for name, value in medians.items())
    print(f"{title:<26} unidle {ours:.3g} us   {row}", flush=True)


if __name__ == "__main__":
    main()
