"""kill -9 of processes that build and read one table, at random points, while its files are replaced: is
every row that is served a row of files that were there, and the table at the end that of the files then?

    UNIDLE_BIN=build/bin python3 python/tests/table_kills.py --kills 1000

Three CSV parts and a side table. Each file has a version in all of its rows, and all its other cells follow
from that, so that a torn, mixed or stale table shows. Prints the counts; the exit code is 1 when anything was
wrong.
"""

import argparse
import collections
import os
import random
import signal
import sys
import tempfile
import time
import traceback

import package

import unidle
from unidle.data import Loader, table

np = package.needs("numpy")

ROWS = 9000  # of a part
PARTS = 3
USERS = 50
AT_ONCE = 3
CHECK_EVERY = 50
LONGEST_S = 120  # of what must not hang
WRONG = 3  # exit code of a child that was served something wrong
FEATURES = ["part", "row", "version", "value", "user_version", "age"]


def value(version, part, row):
    return (version * 7919 + part * 104729 + row * 31) % 65536


def age(version, user):
    return (version * 131 + user * 17) % 1000


class Files:
    """Replaced by renaming, as programs do that never show half a file."""

    def __init__(self, folder):
        self.folder = folder
        self.versions = [0] * (PARTS + 1)  # the last one is the side table's
        for number in range(PARTS + 1):
            self.replace(number)

    def path(self, number):
        return os.path.join(self.folder, f"log_part{number + 1}.csv" if number < PARTS else "users.csv")

    def replace(self, number):
        self.versions[number] += 1
        version = self.versions[number]
        if number == PARTS:
            lines = ["user,user_version,age"]
            lines += [f"u{user},{version},{age(version, user)}" for user in range(USERS)]
        else:
            lines = ["part,row,version,value,user"]
            lines += [
                f'{number},{row},{version},{value(version, number, row)},"u{row % USERS}"'
                for row in range(ROWS)
            ]
        with open(self.path(number) + ".new", "w") as file:
            file.write("\n".join(lines) + "\n")
        os.rename(file.name, self.path(number))

    def open(self):
        return table(
            os.path.join(self.folder, "log.csv"),
            FEATURES,
            joins={"user": os.path.join(self.folder, "users.csv")},
            validation=0.2,
            cache=os.path.join(self.folder, "built"),
            threads=2,
        )

    def served(self):
        """The versions that a table was made of, when it is whole; opens it."""
        source = self.open()
        with Loader(source, 1 << 20, shuffle=False, tensors="numpy", workers=0) as loader:
            (rows,) = next(iter(loader))
        part, row, version, found, user_version, years = rows.astype(np.int64).T
        assert len(rows) == PARTS * ROWS, len(rows)
        assert np.array_equal(row, np.tile(np.arange(ROWS), PARTS)), "rows"
        assert np.array_equal(part, np.repeat(np.arange(PARTS), ROWS)), "parts"
        versions = [*version[::ROWS].tolist(), int(user_version[0])]
        assert np.array_equal(version, np.repeat(versions[:PARTS], ROWS)), "a part is of two versions"
        assert np.all(user_version == versions[PARTS]), "the side table is of two versions"
        assert np.array_equal(found, value(version, part, row)), "values"
        assert np.array_equal(years, age(user_version, row % USERS)), "values of the side table"
        return versions, source.facts["table"]


def builds(files):
    """Until it is killed: reads the table, and takes it away, so that somebody has to build it."""
    while True:
        try:
            _, built = files.served()
        except unidle.errors.InputError as error:
            if "changed while it was read" not in str(error):
                raise
            continue
        try:
            os.unlink(built)
        except FileNotFoundError:
            pass


class Attack:
    def __init__(self, folder, seed):
        self.files, self.draw = Files(folder), random.Random(seed)
        self.children = set()
        self.kills, self.ended, self.replaced = 0, collections.Counter(), 0
        self.faults = []

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
        """This process itself never opens the table: children would share its memory."""
        pid = os.fork()
        if pid == 0:
            self.child(work)
        return pid

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.children.discard(pid)
        if status == -signal.SIGKILL:
            self.kills += 1
        else:
            self.ended[status] += 1
            self.faults.append(f"a process ended with {status}")

    def run(self, kills):
        checked = 0
        while self.kills < kills:
            while len(self.children) < AT_ONCE:
                self.children.add(self.fork(lambda: builds(self.files)))
            time.sleep(self.draw.random() ** 2 * 0.1)
            self.kill(self.draw.choice(sorted(self.children)))
            if self.draw.random() < 0.1:
                self.files.replace(self.draw.randrange(PARTS + 1))
                self.replaced += 1
            if self.kills >= checked + CHECK_EVERY:
                checked += CHECK_EVERY
                self.check()
        self.check()

    def check(self):
        """With nobody else at work."""
        for pid in sorted(self.children):
            self.kill(pid)
        if os.waitstatus_to_exitcode(os.waitpid(self.fork(self.look), 0)[1]) != 0:
            self.faults.append("see above")

    def look(self):
        for _ in range(2):  # what lies there or is built, and then what was built
            versions, built = self.files.served()
            assert versions == self.files.versions, f"{versions}, and the files are {self.files.versions}"
        names = sorted(os.listdir(os.path.dirname(built)))
        name = os.path.basename(built)
        assert name in names and set(names) <= {name, f"{name}.lock", f"{name}.part"}, names


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--kills", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=None)
    arguments = arguments.parse_args()
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    with tempfile.TemporaryDirectory() as folder:
        attack = Attack(folder, seed)
        attack.run(arguments.kills)
    print(f"{attack.kills} kills (seed {seed}), {attack.replaced} files replaced")
    for fault in attack.faults:
        print(f"WRONG: {fault}")
    return 1 if attack.faults else 0


if __name__ == "__main__":
    sys.exit(main())
