"""kill -9 of processes that build and read one table, at random points, while its files are replaced: is
every served row a row of existing files, and does the table at the end contain the final files' rows?

    UNIDLE_BIN=build/bin python3 python/tests/table_kills.py --kills 1000

Three CSV parts and a side table. Each file has a version in all of its rows, from which all its other cells
follow, so that a torn, mixed or stale table shows. Prints the counts; the exit code is 1 if anything was
wrong.
"""

import os
import sys

import killing
import package

import unidle
from unidle.data import Loader, table

np = package.needs("numpy")

ROWS = 9000  # per part
PARTS = 3
USERS = 50
FEATURES = ["part", "row", "version", "value", "user_version", "age"]


def value(version, part, row):
    return (version * 7919 + part * 104729 + row * 31) % 65536


def age(version, user):
    return (version * 131 + user * 17) % 1000


class Files:
    """Replaced by renaming, as in programs that never show half a file."""

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
        """Opens the table; returns the versions of its files if it is whole."""
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
    """Until it is killed: reads the table, and removes it, so that another process must build it."""
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


class TableAttack(killing.Attack):
    at_once = 3

    def __init__(self, folder, seed):
        super().__init__(folder, seed)
        self.files, self.replaced = Files(folder), 0

    def next_work(self):
        return "build", lambda: builds(self.files)

    def after_a_kill(self):
        if self.draw.random() < 0.1:
            self.files.replace(self.draw.randrange(PARTS + 1))
            self.replaced += 1

    def looks(self):
        return {"table": self.look}

    def look(self):
        for _ in range(2):  # first the existing or a built table, then a built one
            versions, built = self.files.served()
            assert versions == self.files.versions, f"{versions}, and the files are {self.files.versions}"
        names = sorted(os.listdir(os.path.dirname(built)))
        name = os.path.basename(built)
        assert name in names and set(names) <= {name, f"{name}.lock", f"{name}.part"}, names

    def told(self):
        return f"{self.replaced} files replaced"


if __name__ == "__main__":
    sys.exit(killing.main(TableAttack, __doc__))
