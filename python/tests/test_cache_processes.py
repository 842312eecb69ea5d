"""unidle.Cache when files are damaged, and for many processes at once."""

import os
import pickle
import shutil
import threading
import unittest

import package
from cache_case import CacheTest, blob_of, python

import unidle

np = package.needs("numpy")


class FaultTest(CacheTest):
    def test_a_damaged_entry_counts_as_missing(self):
        self.cache["a"], self.cache["b"] = {"x": [1]}, {"x": [2]}
        blob = blob_of(self.folder, "a")
        blob.write_bytes(blob.read_bytes()[:-1] + b"\xff")
        out = self.said(
            python("c = unidle.Cache(sys.argv[1]); print(c.get('a'), list(c), c['b']['x'][0])", self.folder)
        )
        self.assertEqual(out.strip(), "None ['b'] 2")
        self.assertFalse(blob.exists())

    def test_where_nothing_can_be_written_results_are_computed(self):
        shutil.rmtree(self.folder / "v1" / "tmp")
        (self.folder / "v1" / "tmp").write_text("no folder")
        process = python(
            "c = unidle.Cache(sys.argv[1])\n"
            "a = [c.get_or_compute('a', lambda: {'x': [7]})['x'] for _ in range(2)]\n"
            "print(*(int(x[0]) for x in a), a[0].flags.writeable, 'a' in c)",
            self.folder,
        )
        out, err = process.communicate()
        self.assertEqual((process.returncode, out.split()), (0, ["7", "7", "False", "False"]), err)
        self.assertEqual(len(err.splitlines()), 1, err)


COMPUTE = """
import os, time
cache = unidle.Cache(sys.argv[1])
def compute():
    with open(sys.argv[2], "a") as log:
        log.write("x")
    time.sleep(0.2)  # the others come meanwhile
    return {"pid": os.getpid()}
print(int(cache.get_or_compute("one", compute)["pid"]))
"""


class ProcessesTest(CacheTest):
    def test_eight_processes_compute_once(self):
        log = self.folder / "log"
        processes = [python(COMPUTE, self.folder / "cache", log) for _ in range(8)]
        answers = {self.said(process).split()[-1] for process in processes}
        self.assertEqual((len(answers), log.read_text()), (1, "x"))

    def test_threads_compute_once(self):
        calls, answers = [], []
        barrier = threading.Barrier(8)

        def ask():
            barrier.wait()
            entry = self.cache.get_or_compute("one", lambda: calls.append(1) or {"x": np.arange(3)})
            answers.append(entry["x"].tolist())

        threads = [threading.Thread(target=ask) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual((len(calls), answers), (1, [[0, 1, 2]] * 8))

    def test_when_the_computing_process_dies_another_takes_over(self):
        dying = python(
            "c = unidle.Cache(sys.argv[1])\n"
            "def compute():\n"
            "    print('computing', flush=True); sys.stdin.read()\n"
            "c.get_or_compute('one', compute)",
            self.folder,
        )
        self.assertEqual(dying.stdout.readline(), "computing\n")
        waiting = python(
            "print(unidle.Cache(sys.argv[1]).get_or_compute('one', lambda: {'x': 5})['x'])", self.folder
        )
        self.assertIsNone(waiting.poll())
        dying.kill()
        dying.communicate()
        self.assertEqual(self.said(waiting).strip(), "5")

    def test_a_forked_child_goes_on(self):
        self.cache["a"] = {"x": [1]}
        held = self.cache["a"]["x"]
        child = os.fork()
        if child == 0:
            try:
                self.cache["b"] = {"x": held + 1}
                fine = self.cache["a"]["x"].tolist() == [1] and len(self.cache) == 2
                os._exit(0 if fine else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual((self.cache["b"]["x"].tolist(), held.tolist()), ([2], [1]))

    def test_a_pickled_cache_is_opened_where_it_arrives(self):
        self.cache["a"] = {"x": [1]}
        again = pickle.loads(pickle.dumps(self.cache))
        self.assertEqual((again.path, again["a"]["x"].tolist()), (self.cache.path, [1]))

    def test_waiting_is_ended_by_a_signal(self):
        with self.cache.claim(self.cache._key(1, b"one")):
            waiting = python(
                "import signal, os\n"
                "def stop(*_): raise KeyboardInterrupt\n"
                "signal.signal(signal.SIGALRM, stop); signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
                "try: unidle.Cache(sys.argv[1])['one'] = {}\n"
                "except KeyboardInterrupt: print('stopped')",
                self.folder,
            )
            self.assertEqual(self.said(waiting).strip(), "stopped")


class Predicted:
    """A map-style data set with a cache."""

    def __init__(self, folder):
        self.cache = unidle.Cache(folder)

    def __len__(self):
        return 32

    def __getitem__(self, item):
        features = self.cache.get_or_compute(str(item % 16), lambda: {"x": np.full(4, item % 16, np.float32)})
        return features["x"].copy()


class WorkersTest(CacheTest):
    def test_workers_of_a_dataloader_share_it(self):
        try:
            from torch.utils.data import DataLoader
        except ImportError:
            self.skipTest("needs torch")
        for method in ("fork", "spawn"):
            with self.subTest(method):
                data = Predicted(self.folder / method)
                loader = DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context=method)
                rows = [row for batch in loader for row in batch[:, 0].tolist()]
                self.assertEqual(rows, [item % 16 for item in range(32)])
                self.assertEqual(len(data.cache), 16)

    def test_tensors_are_stored_and_bfloat16_keeps_its_bits(self):
        try:
            import torch
        except ImportError:
            self.skipTest("needs torch")
        tensor = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
        self.cache["a"] = {"b": tensor, "t": torch.eye(3, requires_grad=True).t()}
        found = self.cache["a"]
        self.assertEqual((found["b"].shape, found["b"].dtype.itemsize), ((2, 3), 2))
        self.assertTrue(
            torch.equal(torch.from_numpy(found["b"].view("int16").copy()).view(torch.bfloat16), tensor)
        )
        np.testing.assert_array_equal(found["t"], np.eye(3, dtype=np.float32))


if __name__ == "__main__":
    unittest.main()
