"""unidle.data.Loader(device="cuda") on a GPU that computes nothing and keeps time (tests/fake_cuda). It reads
page-locked memory only when a copy ends, as late as a real one may, which reveals memory that is refilled too
early."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import gpu_case
import package

package.needs("numpy")

# Rows and a loader whose batches show which thread made them.
BEFORE = """
import os, sys, threading
import numpy as np, torch
from unidle.data import Loader, arrays, images, like, table, wrap

rows = np.random.default_rng(0).random((400, 100), dtype=np.float32)
labels = np.arange(400)

def same(on_host, on_device):
    count = 0
    for ours, theirs in zip(on_host, on_device, strict=True):
        for one, other in zip(ours, theirs):
            assert other.is_cuda and not other.is_inference(), other.device
            assert one.dtype == other.dtype and torch.equal(one, other.cpu()), count
        count += 1
    return count

def kept(loader):
    return [tuple(field.clone() for field in batch) for batch in loader]

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 400
    def __getitem__(self, item):
        return torch.from_numpy(rows[item]), item

pinning = []
pin_memory = torch.Tensor.pin_memory
def told(tensor, *arguments):
    pinning.append(threading.current_thread().name)
    return pin_memory(tensor, *arguments)
torch.Tensor.pin_memory = told
"""


@unittest.skipIf(*gpu_case.SKIPPED)
class DeviceLoaderTest(unittest.TestCase):
    """Copies take 0.6 ms and more, as long as making a few batches."""

    def run_program(self, text, speed="devices=2 pinned_gbs=0.01"):
        """Its output, and the device's log."""
        with tempfile.TemporaryDirectory() as folder:
            said = os.path.join(folder, "said")
            done = subprocess.run(
                [sys.executable, "-c", BEFORE + textwrap.dedent(text)],
                cwd=folder,
                env={
                    **os.environ,
                    "LD_PRELOAD": gpu_case.FAKE,
                    "UNIDLE_FAKE_CUDA": speed,
                    "UNIDLE_FAKE_CUDA_LOG": said,
                    "PYTHONPATH": str(package.BUILD / "share" / "unidle" / "python"),
                },
                capture_output=True,
                text=True,
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            with open(said) as file:
                return done.stdout.split(), file.read().splitlines()

    def test_bytes_are_right_though_slots_are_filled_again(self):
        printed, said = self.run_program("""
            on_host = kept(Loader(arrays(rows, labels), 16, workers=2, seed=3))
            loader = Loader(arrays(rows, labels), 16, workers=2, seed=3, device="cuda")
            print(same(on_host, loader))
            # Slots, and what is copied: no new memory for each batch.
            print(0 < torch.cuda.host_memory_stats()["num_host_alloc"] < 30)
            on_host = kept(Loader(arrays(rows, labels), 16, workers=0, seed=3))
            print(same(on_host, Loader(arrays(rows, labels), 16, workers=0, seed=3, device="cuda:0")))
            # The program's stream of compute is busy: copies run far ahead of what uses them.
            a = torch.ones(2000, 2000, device="cuda")
            batches = []
            for batch in loader:
                a @ a
                batches.append(batch)
            expected = Loader(arrays(rows, labels), 16, workers=2, seed=3)
            expected.set_epoch(1)
            print(same(kept(expected), batches))
            print(pinning)
        """)
        self.assertEqual(printed, ["25", "True", "25", "25", "[]"])
        self.assertEqual(said, ["context: 0"])

    def test_tables_pictures_and_sequences(self):
        printed, _ = self.run_program("""
            from PIL import Image
            with open("t.csv", "w") as file:
                file.write("a,b,c\\n" + "".join("%d,%d,%d\\n" % (i, i * 2, i % 3) for i in range(300)))
            for label in "ab":
                os.makedirs("pictures/" + label)
                for number in range(20):
                    picture = np.random.default_rng(number).integers(0, 255, (40, 50, 3), dtype=np.uint8)
                    Image.fromarray(picture).save("pictures/%s/%d.png" % (label, number))
            ragged = [np.full((1 + i % 7, 3), i, np.float32) for i in range(100)]
            twice = lambda picture: picture * 2
            data = torch.utils.data.TensorDataset(torch.from_numpy(rows), torch.from_numpy(labels))
            for source in (
                table("t.csv", features=["a", "b"], targets=["c"]),
                images("pictures", size=32), images("pictures", size=32, transform=twice),
                arrays(ragged), like(data),
            ):
                options = dict(batch_size=8, workers=2, seed=1)
                on_host, lengths = [], []
                host = Loader(source, **options)
                for batch in host:
                    on_host.append(tuple(field.clone() for field in batch))
                    lengths.append(host.extents)
                gpu = Loader(source, device="cuda", **options)
                on_device, told = [], []
                for batch in gpu:
                    on_device.append(batch)
                    told.append(gpu.extents)
                print(same(on_host, on_device))
                for one, other in zip(lengths, told):
                    assert [None if x is None else x.tolist() for x in one] == [
                        None if x is None else x.tolist() for x in other], (one, other)
            print(pinning)
        """)
        self.assertEqual(printed, ["38", "5", "5", "13", "50", "[]"])

    def test_pinned_batches_may_be_copied_without_waiting(self):
        printed, _ = self.run_program("""
            for source in (arrays(rows, labels), wrap(Slow())):
                options = dict(workers=2, seed=3)
                on_host = kept(Loader(source, 16, **options))
                loader = Loader(source, 16, pin_memory=True, **options)
                for epoch in range(2):
                    loader.set_epoch(0)
                    copied, pins = [], set()
                    for batch in loader:
                        pins |= {field.is_pinned() for field in batch}
                        copied.append([field.to("cuda", non_blocking=True) for field in batch])
                    print(same(on_host, copied), pins)
            batches = kept(Loader(arrays(rows, labels), 16, workers=2, pin_memory=True))
            print(sorted(torch.cat([batch[1] for batch in batches]).tolist()) == labels.tolist())
            print({name.rstrip("_0123456789") for name in pinning})
        """)
        self.assertEqual(printed, 4 * ["25", "{True}"] + ["True", "{'unidle-pin'}"])

    def test_whatever_a_collate_function_makes(self):
        printed, _ = self.run_program("""
            class Boxes(torch.Tensor):
                pass
            def collate(samples):
                x = torch.stack([row for row, _ in samples])
                return {"x": x, "part": x[:, ::2], "boxes": x.as_subclass(Boxes), "there": x[:2].cuda(),
                        "none": x[:0], "words": ["a", x[0]]}
            for workers in (0, 2):
                loader = Loader(wrap(Slow(), collate), 16, shuffle=False, workers=workers, device="cuda")
                for number, batch in enumerate(loader):
                    x = torch.from_numpy(rows[16 * number:16 * number + 16])
                    for name, wanted in (("x", x), ("boxes", x), ("there", x[:2]), ("none", x[:0])):
                        assert torch.equal(batch[name].cpu(), wanted), (name, number)
                    assert batch["part"].is_cuda and batch["part"].shape == (16, 50)
                    assert batch["words"][0] == "a" and torch.equal(batch["words"][1].cpu(), x[0])
                    kinds = {name: type(batch[name]).__name__ for name in ("x", "boxes")}
                print(number, *kinds.values())
        """)
        self.assertEqual(printed, 2 * ["24", "Tensor", "Boxes"])

    def test_a_damaged_file_fails_its_own_batch(self):
        printed, _ = self.run_program("""
            from PIL import Image
            os.makedirs("pictures/a")
            for number in range(30):
                Image.new("RGB", (40, 40), (number, 0, 0)).save("pictures/a/%02d.png" % number)
            with open("pictures/a/17.png", "wb") as file:
                file.write(b"no picture")
            for policy in ("fail", "skip"):
                for device in (None, "cuda"):
                    options = dict(shuffle=False, workers=2, on_error=policy, device=device)
                    loader = Loader(images("pictures", size=32, train=False, resize=32), 4, **options)
                    sizes, skipped = [], []
                    try:
                        for batch in loader:
                            sizes.append(len(batch[0]))
                            skipped.append(loader.skipped)
                    except Exception as error:
                        print("17.png" in str(error))
                    told = "%s;%s" % (sizes, skipped.index(1) if 1 in skipped else None)
                    print(told.replace(" ", ""))
        """)
        failed, skipped = ["True", "[4,4,4,4];None"], ["[4,4,4,4,3,4,4,2];4"]
        self.assertEqual(printed, 2 * failed + 2 * skipped)

    def test_behind_a_batch_that_failed_the_next_one_comes(self):
        """Both if it was requested ahead and if it was due."""
        printed, _ = self.run_program("""
            from unidle.data import npy
            lost = (20, 32, 33, 36)
            for row in range(40):
                np.save("x_%02d.npy" % row, rows[row : row + 1])
            files = npy(".", ["x"])
            for row in lost:
                os.truncate("x_%02d.npy" % row, 200)
            class Failing(Slow):
                def __len__(self):
                    return 40
                def __getitem__(self, item):
                    return super().__getitem__(item) if item not in lost else 1 // 0
            for source in (files, wrap(Failing())):
                for workers in (0, 2):
                    loader = Loader(source, 4, shuffle=False, workers=workers, device="cuda")
                    for epoch in range(2):
                        batches, told = iter(loader), []
                        for number in range(11):
                            try:
                                batch = next(batches)[0].cpu()
                                told.append(torch.equal(batch, torch.tensor(rows[4 * number :][:4])))
                            except StopIteration:
                                told.append("end")
                            except (ArithmeticError, ValueError):
                                told.append("error")
                            place = loader.state_dict()
                        print(*told, place["epoch"], place["sample"], sep=",")
        """)
        told = ["True"] * 5 + ["error"] + ["True"] * 2 + ["error"] * 2 + ["end"]
        self.assertEqual(printed, 4 * [",".join([*told, epoch, "0"]) for epoch in "12"])

    def test_a_wrapped_data_set_is_pinned_by_a_thread(self):
        printed, _ = self.run_program("""
            on_host = kept(Loader(wrap(Slow()), 16, workers=2, seed=3))
            loader = Loader(wrap(Slow()), 16, workers=2, seed=3, device="cuda")
            for epoch in range(2):
                if epoch == 1:
                    loader.set_epoch(0)
                print(same(on_host, loader))
            print({name.rstrip("_0123456789") for name in pinning})
            class Failing(Slow):
                def __getitem__(self, item):
                    if item == 100:
                        raise KeyError("of the data set")
                    return super().__getitem__(item)
            taken = 0
            try:
                for batch in Loader(wrap(Failing()), 16, shuffle=False, workers=2, device="cuda"):
                    assert torch.equal(batch[1].cpu(), torch.arange(16 * taken, 16 * taken + 16))
                    taken += 1
            except KeyError as error:
                print(taken)
        """)
        self.assertEqual(printed, ["25", "25", "{'unidle-pin'}", "6"])

    def test_the_next_batch_is_copied_while_this_one_is_computed_with(self):
        """Kernels of 0.7 s, copies of 1 ms, each from the loader's own stream."""
        for source, workers in (("arrays(rows, labels)", 2), ("wrap(Slow())", 2)):
            printed, _ = self.run_program(
                """
                a = torch.ones(3000, 3000, device="cuda")
                loader = Loader(%s, 16, workers=%d, device="cuda")
                batches = iter(loader)
                hidden = 0
                for _ in range(4):
                    batch = next(batches)
                    a @ a
                    computed = torch.cuda.current_stream().record_event()
                    if batches._ahead is not None:
                        batches._ahead.copy.done.synchronize()
                        hidden += not computed.query()
                    computed.synchronize()
                print(hidden)
                """
                % (source, workers),
                speed="devices=1 fp32_tflops=0.08",
            )
            self.assertGreaterEqual(int(printed[0]), 3, source)  # the first may not be ready

    def test_what_uses_a_batch_waits_for_its_copy(self):
        printed, _ = self.run_program("""
            (batch,) = Loader(arrays(rows), 400, workers=1, device="cuda")  # its copy takes 16 ms
            torch.cuda.current_stream().synchronize()
            print(torch.equal(batch[0].cpu().sort(0)[0], torch.from_numpy(rows).sort(0)[0]))
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                (batch,) = Loader(arrays(rows), 400, workers=1, device="cuda")
                print(side.query())
        """)
        self.assertEqual(printed, ["True", "False"])

    def test_memory_of_a_batch_is_not_given_away_while_it_is_used(self):
        """A kernel of seconds uses the first batch, which the program releases: nothing is copied into its
        memory before the kernel is over. Nor is the memory of a batch that nobody took used before its copy
        is over."""
        printed, _ = self.run_program(
            """
            a = torch.ones(3000, 3000, device="cuda")
            loader = Loader(arrays(rows, labels), 16, shuffle=False, workers=1, device="cuda")
            batches = iter(loader)
            batch = next(batches)
            a @ a
            computed = torch.cuda.current_stream().record_event()
            del batch
            early = copied = 0
            for _ in range(5):
                next(batches)
                if batches._ahead is not None:
                    copied += 1
                    early += batches._ahead.copy.done.query() and not computed.query()
            print(early, copied > 0)
            while batches._ahead is None:  # it was not ready in time
                next(batches)
            left = batches._ahead.copy.done
            del batches
            loader.close()
            torch.cuda.current_stream().synchronize()
            print(left.query())
            """,
            speed="devices=1 fp32_tflops=0.02 pinned_gbs=0.0001",
        )
        self.assertEqual(printed, ["0", "True", "True"])

    def test_a_batch_may_be_taken_on_another_stream_than_the_one_before(self):
        printed, _ = self.run_program("""
            on_host = kept(Loader(arrays(rows, labels), 16, workers=2, seed=3))
            batches = iter(Loader(arrays(rows, labels), 16, workers=2, seed=3, device="cuda"))
            taken = []
            for number in range(25):
                with torch.cuda.stream(torch.cuda.Stream()), torch.inference_mode(number % 2 == 0):
                    taken.append(tuple(field + 0 for field in next(batches)))
                    torch.cuda.current_stream().synchronize()
            print(len(taken))
        """)
        self.assertEqual(printed, ["25"])

    def test_ends_and_breaks_release_everything(self):
        printed, _ = self.run_program("""
            import gc, weakref
            loader = Loader(arrays(rows, labels), 16, workers=2, seed=3, device="cuda")
            for batch in loader:
                break
            first = batch[1].tolist()
            on_host = kept(Loader(arrays(rows, labels), 16, workers=2, seed=3))
            print(first == on_host[0][1].tolist())
            loader.load_state_dict(loader.state_dict())
            print(same(on_host[1:], loader))
            iterator = iter(loader)
            next(iterator)
            loader.close()  # with copies under way: page-locked memory is not given to others before
            other = torch.empty(16 * 400, dtype=torch.uint8, pin_memory=True).fill_(7)
            try:
                next(iterator)
            except Exception as error:
                print(type(error).__name__)
            gone = weakref.ref(loader)
            del loader, iterator, batch
            print(gone() is None, len(torch.cuda.memory_snapshot()) > 0)
            torch.cuda.synchronize()
            print(torch.cuda.memory_allocated(), torch._C._host_emptyCache())
            stats = torch.cuda.host_memory_stats()
            del other
            torch._C._host_emptyCache()
            print(torch.cuda.host_memory_stats()["allocated_bytes.current"])
        """)
        self.assertEqual(printed, ["True", "24", "UsageError", "True", "True", "0", "None", "0"])

    def test_a_copy_under_way_outlives_its_loader(self):
        printed, _ = self.run_program(
            """
            loader = Loader(arrays(rows, labels), 100, shuffle=False, workers=1, device="cuda")
            batch = next(iter(loader))  # its copy takes 40 ms
            loader.close()
            del loader
            others = [torch.empty(100 * 400, dtype=torch.uint8, pin_memory=True).fill_(7) for _ in range(4)]
            print(torch.equal(batch[0].cpu(), torch.from_numpy(rows[:100])))
            """,
            speed="devices=1 pinned_gbs=0.001",
        )
        self.assertEqual(printed, ["True"])

    def test_a_forked_process_ends_as_it_wants(self):
        printed, said = self.run_program("""
            loader = Loader(arrays(rows, labels), 16, workers=2, device="cuda")
            wrapped = Loader(wrap(Slow()), 16, workers=2, device="cuda")
            iterators = [iter(loader), iter(wrapped)]
            batches = [next(one) for one in iterators]
            for done in range(2):
                child = os.fork()
                if child == 0:
                    if done:
                        try:
                            next(iterators[0])
                        except Exception as error:
                            print(type(error).__name__)
                    del batches  # its memory was the parent's own to give back
                    sys.stdout.flush()
                    del iterators, loader, wrapped
                    sys.exit(3)
                print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            print(len([1 for batch in iterators[0]]), len([1 for batch in iterators[1]]))
        """)
        self.assertEqual(printed, ["3", "ForkedError", "3", "24", "24"])

    def test_the_device_is_left_alone_until_batches_are_taken(self):
        printed, said = self.run_program("""
            loader = Loader(arrays(rows), 16, device="cuda:1")
            print(len(loader), loader.workers > 0, torch.cuda.is_initialized())
            for batch in loader:
                print(batch[0].device)
                break
            torch.cuda.set_device(1)
            plain = Loader(arrays(rows), 16, device="cuda")
            print(next(iter(plain))[0].device)
        """)
        self.assertEqual(printed, ["25", "True", "False", "cuda:1", "cuda:1"])
        self.assertEqual(said, ["context: 1"])

    def test_without_page_locked_memory_copies_are_right_and_it_is_said_once(self):
        printed, _ = self.run_program("""
            import warnings
            empty = torch.empty
            def no_memory(*arguments, pin_memory=False, **options):
                if pin_memory:
                    raise RuntimeError("CUDA error: out of memory")
                return empty(*arguments, **options)
            torch.empty = no_memory
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                on_host = kept(Loader(arrays(rows, labels), 16, workers=2, seed=3))
                print(same(on_host, Loader(arrays(rows, labels), 16, workers=2, seed=3, device="cuda")))
                print(len(caught), "page-locked" in str(caught[0].message))
        """)
        self.assertEqual(printed, ["25", "1", "True"])


if __name__ == "__main__":
    unittest.main()
