"""What a record says of the exception that ended a run: the innermost error and its line."""

import sys
import textwrap
import unittest
from pathlib import Path

from run_case import RunCase

WORKERS = """
    import torch
    class Rows(torch.utils.data.Dataset):
        def __len__(self): return 8
        def __getitem__(self, i): return int("row %d" % i)  # here
    for _ in torch.utils.data.DataLoader(Rows(), num_workers=1): pass
"""
SPAWNED = """
    import torch.multiprocessing as processes
    def work(rank): raise KeyError("shard 3")  # here
    if __name__ == "__main__": processes.spawn(work, nprocs=1)
"""
POOL = """
    import multiprocessing
    def work(row): return 1 / row  # here
    if __name__ == "__main__":
        with multiprocessing.get_context("fork").Pool(1) as pool: pool.map(work, [0])
"""
GROUP = """
    import asyncio
    async def shard(): raise ValueError("broken")  # here
    async def main():
        async with asyncio.TaskGroup() as group: group.create_task(shard())
    asyncio.run(main())
"""
CAUSE = """
    try: {}["path"]
    except KeyError as missing: raise RuntimeError("no data") from missing  # here
"""
NO_TEXT = """
    class Wrong(Exception):
        def __str__(self): return self.missing
    raise Wrong("unseen")  # here
"""


class ExceptionTextTest(RunCase):
    def said(self, program):
        """The message of the only note, whose line must be the one that is marked."""
        lines = textwrap.dedent(program).strip().split("\n")
        Path(self.folder, "train.py").write_text("\n".join(lines))
        self.assertEqual(self.observed(sys.executable, "train.py").returncode, 1)
        (note,) = self.record.notes("exception")
        marked = [number for number, line in enumerate(lines, 1) if line.endswith("# here")]
        self.assertEqual(note["where"], "train.py:%d" % marked[0], note)
        return note["message"]

    def test_the_innermost_error_counts(self):
        self.assertRegex(self.said(WORKERS), r"\AValueError: invalid literal for int\(\).*'row 0'\Z")
        self.assertEqual(self.said(SPAWNED), "KeyError: 'shard 3'")
        self.assertEqual(self.said(POOL), "ZeroDivisionError: division by zero")

    @unittest.skipIf(sys.version_info < (3, 11), "needs exception groups")
    def test_a_group_is_its_first_error(self):
        self.assertEqual(self.said(GROUP), "ValueError: broken")

    def test_a_cause_and_a_text_that_fails(self):
        self.assertEqual(self.said(CAUSE), "RuntimeError: no data (from KeyError: 'path')")
        self.assertEqual(self.said(NO_TEXT), "Wrong: <exception str() failed>")

    def test_a_syntax_error_has_its_line(self):
        self.assertIn("SyntaxError", self.said("x = 1\ny = (  # here"))


if __name__ == "__main__":
    unittest.main()
