"""unidle.data.like: the samples of a data set of the program, or why not; and the lines of code for it."""

import os
import tempfile
import unittest
from pathlib import Path

import package
from unidle.data.recognition import recognize
from unidle.data.recognition.patch import Live, patch

import unidle
from unidle import data

np, torch = package.needs("numpy", "torch")
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset  # noqa: E402

STEPS, WIDTH = 12, 3


class Held(Dataset):
    """Three arrays with equally many rows."""

    def __init__(self, rows=40):
        rng = np.random.default_rng(0)
        self.ids = rng.integers(0, 9, (rows, 2))
        self.values = rng.random((rows, WIDTH), dtype=np.float32)
        self.target = torch.arange(rows, dtype=torch.float32)
        self.count, self.offset = STEPS, 2

    def __len__(self):
        return len(self.target)


class Rows(Held):
    def __getitem__(self, i):
        """In the tutorials' form."""
        if torch.is_tensor(i):
            i = i.tolist()
        x = self.values[i]
        return self.ids[i, 0], torch.from_numpy(x), float(self.target[i])


class Windows(Held):
    def __len__(self):
        return len(self.values) - self.count - self.offset

    def __getitem__(self, index):
        start, end = index, index + self.count
        x = torch.tensor(self.values[start:end], dtype=torch.float64)
        return x, self.values[end : end + self.offset], self.target[index + STEPS]


class Strided(Held):
    def __len__(self):
        return (len(self.values) - STEPS) // 4

    def __getitem__(self, i):
        return torch.as_tensor(self.values[4 * i : 4 * i + STEPS, :2]), self.target[4 * i + STEPS]


class NotTheSame(Rows):
    """The class behaves differently from its source."""

    def __init__(self):
        super().__init__()
        self.ids = self.ids.astype(np.int32)

    def __getitem__(self, i):
        return torch.tensor(self.ids[i], dtype=torch.int64), self.values[i]


class TooLong(Windows):
    def __len__(self):
        return len(self.values)


class Alone(Held):
    def __getitem__(self, i):
        return self.values[i]


class Late(Windows):
    def __init__(self):
        super().__init__()
        self.values = None

    def __len__(self):
        return 20


class Drawn(Held):
    def __getitem__(self, i):
        return self.values[i] + np.random.rand(WIDTH), self.target[i]


class Conditional(Held):
    def __getitem__(self, i):
        if i > 3:
            return self.values[i], self.target[i]
        return self.values[0], self.target[0]


class Frames(Dataset):
    def __init__(self, path):
        import pandas as pd

        self.frame = pd.read_csv(path)

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, i):
        row = self.frame.iloc[i]
        return torch.tensor(row.values[:-1]), row["y"]


class Parsed(Frames):
    def __init__(self, path):
        import pandas as pd

        table = pd.read_csv(path)
        self.x, self.y = table[["a", "b"]].to_numpy(np.float32), table["y"].to_numpy(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Shards(Held):
    def __getitem__(self, i):
        return np.load("shard_%d.npy" % (i // 10))[i % 10], self.target[i]


class Photographs(Held):
    paths = ["a.jpg"]

    def read(self, path):
        from PIL import Image

        with Image.open(path) as picture:
            return picture.convert("RGB")

    def __getitem__(self, i):
        return np.asarray(self.read(self.paths[i])), self.target[i]


class OnePhotograph(Photographs):
    def __getitem__(self, i):
        picture = self.read("the_only_one.jpg")
        return np.asarray(picture)[i : i + 8], self.target[i]


class Pairs(Photographs):
    def __getitem__(self, i):
        from PIL import Image

        return Image.open("high/" + self.paths[i]), Image.open("low/" + self.paths[i])


def batches(loader):
    return [tuple(map(torch.as_tensor, batch)) for batch in loader]


class LikenessTest(unittest.TestCase):
    def same(self, dataset, source_name):
        """Each batch in order equals torch's, to the bit and in its type."""
        found = recognize(dataset)
        self.assertEqual((found.source, list(found.left)), (source_name, []))
        theirs = batches(DataLoader(dataset, 7))
        with data.Loader(data.like(dataset), 7, shuffle=False) as loader:
            ours = batches(loader)
        self.assertEqual(len(ours), len(theirs))
        for one, other in zip(ours, theirs):
            self.assertEqual([x.dtype for x in one], [x.dtype for x in other])
            for x, y in zip(one, other):
                self.assertTrue(torch.equal(x, y))

    def refused(self, dataset, *texts):
        with self.assertRaises(unidle.UsageError) as caught:
            data.like(dataset)
        for text in texts:
            self.assertIn(text, str(caught.exception))

    def test_rows_of_arrays(self):
        self.same(Rows(), "arrays")
        self.same(TensorDataset(torch.rand(9, 2), torch.arange(9)), "arrays")
        self.same(TensorDataset(torch.rand(9, 2)), "arrays")
        self.assertEqual(
            recognize(Rows()).code, "unidle.data.arrays(self.ids[:, 0], self.values, self.target)"
        )

    def test_windows_of_arrays(self):
        self.same(Windows(), "windows")
        self.same(Strided(), "windows")
        self.assertEqual(recognize(Windows()).code, "unidle.data.windows(Windows.values, 12, 2)")
        self.assertEqual(recognize(Strided()).code, "unidle.data.windows(Strided.values, 12, 1, stride=4)")

    def test_a_part_of_a_data_set(self):
        self.same(Subset(Windows(), [9, 2, 2, 17]), "windows")

    def test_samples_that_are_not_the_same_are_found(self):
        dataset = NotTheSame()
        data.like(dataset)
        dataset.__class__ = type("Longer", (NotTheSame,), {"__getitem__": lambda self, i: 0})
        self.refused(dataset, "not known")

        class Changed(Rows):
            def __len__(self):
                self.values = self.values + 1
                return 40

        self.refused(Changed(), "tensor 1 of the samples of Changed has other values")

    def test_what_is_left_to_a_person_is_said(self):
        self.refused(TooLong(), "unidle.data.windows", "beyond the end")
        self.refused(Alone(), "single tensors")
        self.refused(Late(), "Late.values is None where the loader is made")
        self.refused([1, 2, 3], "wrap(dataset)")

    def test_what_does_something_else_is_not_known(self):
        for dataset in (Drawn(), Conditional(), DataLoader([1])):
            self.assertIsNone(recognize(dataset), type(dataset).__name__)

    def test_what_is_read_names_a_source(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.csv")
            Path(path).write_text("a,b,y\n1,2,3\n4,5,6\n7,8,9\n")
            frames, parsed = recognize(Frames(path)), recognize(Parsed(path))
            self.same(Parsed(path), "arrays")
        lines = Path(__file__).read_text().splitlines()
        self.assertEqual(frames.source, "table")
        self.assertIn("self.frame = pd.read_csv(path)", lines[frames.where[1] - 1])
        self.assertIn("unidle.data.table reads CSV in parallel", parsed.note)
        for dataset, source, text in (
            (Shards(), "npy", "np.load("),
            (Photographs(), "images", "Image.open(path)"),
            (Pairs(), "pairs", "Image.open("),
        ):
            found = recognize(dataset)
            self.assertEqual(found.source, source)
            self.assertIn(text, lines[found.where[1] - 1])
            self.assertTrue(found.left)
            self.refused(dataset, "unidle.data." + source)
        self.assertIsNone(recognize(OnePhotograph()))


try:
    import torchvision
except ImportError:
    torchvision = None


@unittest.skipIf(torchvision is None, "needs torchvision")
class TorchvisionTest(unittest.TestCase):
    """like() compares the samples that are not drawn at random."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def pictures(self, *steps):
        from PIL import Image

        rng = np.random.default_rng(0)
        for name in ("ants", "bees"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
            for number in range(3):
                blocks = rng.integers(0, 255, (30 + number, 40, 3), dtype=np.uint8)
                picture = Image.fromarray(np.kron(blocks, np.ones((9, 9, 1), np.uint8)))
                picture.save(os.path.join(self.folder, name, "%d.jpg" % number))
        return torchvision.datasets.ImageFolder(self.folder, torchvision.transforms.Compose(steps))

    def test_a_folder_of_pictures(self):
        from torchvision.transforms import (
            CenterCrop,
            ColorJitter,
            Normalize,
            RandomHorizontalFlip,
            RandomResizedCrop,
            Resize,
            ToTensor,
        )

        usual = Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
        for steps, options in (
            ((RandomResizedCrop(224), RandomHorizontalFlip(), ToTensor(), usual), ""),
            ((RandomResizedCrop(64, (0.2, 1)), ToTensor(), usual), ", size=64, scale=(0.2, 1), flip=0.0"),
            ((Resize(256), CenterCrop(224), ToTensor(), usual), ", train=False"),
            (
                (Resize(80), CenterCrop(64), ToTensor()),
                ", train=False, resize=80, size=64, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0)",
            ),
        ):
            dataset = self.pictures(*steps)
            self.assertEqual(recognize(dataset).code, f"unidle.data.images({self.folder!r}{options})")
            source = data.like(dataset)
            self.assertEqual((len(source), source.classes), (6, ["ants", "bees"]))
        for steps, text in (
            ((Resize((64, 64)), ToTensor()), "begins with Resize"),
            ((ToTensor(),), "begins with ToTensor"),
            ((RandomResizedCrop(64), ColorJitter(0.1), ToTensor()), "has ColorJitter, ToTensor"),
            ((RandomResizedCrop((64, 32)), ToTensor()), "no square"),
        ):
            with self.assertRaisesRegex(unidle.UsageError, text):
                data.like(self.pictures(*steps))

    def test_samples_that_the_program_has_changed_are_left_to_a_person(self):
        from torchvision.transforms import RandomResizedCrop, ToTensor

        def relabel(dataset):
            dataset.samples = [(path, 1 - label) for path, label in dataset.samples]

        def in_place(dataset):
            dataset.samples[2] = (dataset.samples[2][0], 1)

        for change in (relabel, in_place, lambda dataset: dataset.samples.reverse()):
            dataset = self.pictures(RandomResizedCrop(64), ToTensor())
            change(dataset)
            with self.assertRaisesRegex(unidle.UsageError, "its samples were changed"):
                data.like(dataset)
        dataset = self.pictures(RandomResizedCrop(64), ToTensor())
        dataset.samples[0], dataset.samples[1] = dataset.samples[1], dataset.samples[0]  # of one class
        with self.assertRaisesRegex(unidle.UsageError, "are not those of its folders"):
            data.like(dataset)

    def test_the_forms_of_torchvisions_guides(self):
        from torchvision.transforms import CenterCrop, Normalize, Resize, v2
        from torchvision.transforms._presets import ImageClassification

        plain = [Resize(80), CenterCrop(64), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
        for steps in (
            (ImageClassification(crop_size=64, resize_size=80),),
            (*plain, Normalize(0.5, 0.25)),
            (v2.ToImage(), v2.Resize(80), v2.CenterCrop(64), v2.ToDtype(torch.float32, scale=True)),
        ):
            self.assertEqual(len(data.like(self.pictures(*steps))), 6)
        self.assertIn(
            "mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)",
            recognize(self.pictures(*plain, Normalize(0.5, 0.25))).code,
        )

    def test_digits(self):
        from torchvision.transforms import Compose, Normalize, RandomRotation, ToTensor

        raw = Path(self.folder, "MNIST", "raw")
        raw.mkdir(parents=True)
        rng = np.random.default_rng(0)
        head = (2051).to_bytes(4, "big") + b"".join(n.to_bytes(4, "big") for n in (30, 28, 28))
        (raw / "train-images-idx3-ubyte").write_bytes(head + rng.bytes(30 * 28 * 28))
        labels = (2049).to_bytes(4, "big") + (30).to_bytes(4, "big") + bytes(range(30))
        (raw / "train-labels-idx1-ubyte").write_bytes(labels)
        for name in ("images-idx3", "labels-idx1"):
            (raw / f"t10k-{name}-ubyte").touch()
        for transform in (
            ToTensor(),
            Compose([ToTensor(), Normalize((0.1307,), (0.3081,))]),
            Compose([ToTensor(), Normalize(0.5, 0.5)]),
        ):
            dataset = torchvision.datasets.MNIST(self.folder, transform=transform)
            (theirs,) = DataLoader(dataset, 30)
            with data.Loader(data.like(dataset), 30, shuffle=False) as loader:
                (ours,) = loader
            self.assertTrue(all(map(torch.equal, ours, theirs)))
        with self.assertRaisesRegex(unidle.UsageError, "does not begin with ToTensor"):
            data.like(torchvision.datasets.MNIST(self.folder, transform=RandomRotation(5)))


SCRIPT = '''"""Trains."""
from __future__ import annotations
import torch


def main(args, options):
    a = torch.utils.data.DataLoader(
        Größe(args.path,
              5), batch_size=args.size, shuffle=True, num_workers=4, drop_last=args.drop)
    b = DataLoader(data, 4)
    c = DataLoader(data, **options)
    d = DataLoader(data, **options, **more)
    e = DataLoader(*given)
    f, g = DataLoader(x, 2), DataLoader(y, 2)
    h = make_loader(data)
    i = DataLoader(data, 4, pin_memory=args.cuda)
    j = DataLoader(data, 4, False, None, None, 2, None, False)
'''


class PatchTest(unittest.TestCase):
    def added(self, line, live=Live(4, True, False)):
        made = patch(SCRIPT, "train.py", line, live)
        return [text[1:] for text in made.splitlines()[2:] if text.startswith("+")]

    def test_the_call_takes_its_new_form(self):
        self.assertEqual(
            self.added(7, Live(4, True, True)),
            [
                "import unidle.data",
                "    a = unidle.data.Loader(unidle.data.like(Größe(args.path,",
                "              5)), batch_size=args.size, shuffle=True, drop_last=args.drop)",
            ],
        )
        self.assertEqual(
            self.added(10, Live(4, False, False))[1:],
            ["    b = unidle.data.Loader(unidle.data.like(data), batch_size=4, shuffle=False)"],
        )
        self.assertEqual(
            self.added(11, Live(8, True, True))[1:],
            [
                "    c = unidle.data.Loader(unidle.data.like(data), "
                'batch_size=options["batch_size"], drop_last=True)'
            ],
        )

    def test_batches_are_pinned_as_before(self):
        like = "unidle.data.Loader(unidle.data.like(data), batch_size=4"
        self.assertEqual(self.added(16)[1:], [f"    i = {like}, pin_memory=args.cuda)"])
        self.assertEqual(self.added(17)[1:], [f"    j = {like})"])

    def test_an_expression_for_the_order_stays(self):
        text = "import a\nloader = DataLoader(data, batch_size=4, shuffle=flag, drop_last=not flag)\n"
        for live in (Live(4, True, False), Live(4, False, True)):
            made = patch(text, "train.py", 2, live)
            self.assertIn("batch_size=4, shuffle=flag, drop_last=not flag)", made)

    def test_nothing_where_it_is_not_certain(self):
        for line in (1, 12, 13, 14, 15, 99):
            self.assertEqual(self.added(line), [], line)
        self.assertEqual(patch("x = (", "a.py", 1, Live(1, True, False)), "")
        self.assertEqual(patch("loader = DataLoader(data)", "a.py", 1, Live(1, True, False)), "")

    def test_the_patch_fits(self):
        import subprocess

        with tempfile.TemporaryDirectory() as folder:
            for ending in ("\n", "\r\n"):
                text = SCRIPT.replace("\n", ending)
                Path(folder, "train.py").write_bytes(text.encode())
                made = patch(text, "train.py", 10, Live(4, True, False))
                subprocess.run(
                    ["patch", "-s", "-p0", "--binary"], cwd=folder, input=made.encode(), check=True
                )
                changed = Path(folder, "train.py").read_bytes().decode()
                self.assertEqual(changed.count(ending), SCRIPT.count("\n") + 1)
                self.assertIn("unidle.data.like(data), batch_size=4)", changed)


if __name__ == "__main__":
    unittest.main()
