"""Processes that share a record without a launcher that ends with them, as the workers of Ray do."""

import unittest

from test_attached import AttachedCase

JOB = """
import multiprocessing, os, sys, unidle
from unidle import _recording

class Observe(unidle.observe):
    def _ranks(self):
        return _recording.Ranks(f"test-{job}", os.getpid(), job, ["job", "7"], folder, 2)

def work(rank):
    try:
        with Observe():
            for _ in range(5): unidle.step(samples=3)
            together.wait()  # both are in the record
            if rank == 1 and "fails" in sys.argv: raise ValueError
    except ValueError:
        print("failed", flush=True)
    together.wait()  # the first one must not end before

job, folder, context = os.getpid(), os.getcwd(), multiprocessing.get_context("fork")
together = context.Barrier(2)
os.mkdir("elsewhere")
os.chdir("elsewhere")
processes = [context.Process(target=work, args=(rank,)) for rank in range(2)]
for process in processes: process.start()
for process in processes: process.join()
print(*(process.exitcode for process in processes), job)
"""


class SharedRecordTest(AttachedCase):
    def ended(self, *words):
        done = self.ran(JOB, *words)
        self.assertEqual(done.stderr.count("unidle: recording"), 1, done.stderr)
        record = self.record()
        self.assertEqual(record.rows("select count(*) from steps group by process"), [(5,), (5,)])
        self.assertEqual(record.meta("command"), ["job", "7"])
        *lines, (*codes, job) = map(str.split, done.stdout.splitlines())
        self.assertEqual((codes, int(job)), (["0", "0"], record.meta("pid")))
        return lines, record.meta("outcome")

    def test_the_record_ends_with_the_last_process(self):
        self.assertEqual(self.ended(), ([], "completed"))

    def test_it_ends_with_the_first_that_fails(self):
        self.assertEqual(self.ended("fails"), ([["failed"]], "failed"))


if __name__ == "__main__":
    unittest.main()
