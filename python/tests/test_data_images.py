"""unidle.data.images: torchvision's pixels for Pillow's pictures; faulty files are named."""

import random
import tempfile
import unittest
from pathlib import Path

import package

import unidle
from unidle.data import Loader, images

np, torch, Image, features = package.needs("numpy", "torch", "PIL.Image", "PIL.features")


def reads_webp():
    """Whether the build has libwebp."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a").mkdir()
        Image.new("RGB", (2, 2)).save(Path(folder) / "a" / "1.webp")
        try:
            return len(images(folder)) == 1
        except unidle.InputError:
            return False


WEBP = features.check("webp") and reads_webp()
BILINEAR = Image.Resampling.BILINEAR
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZES = [
    (500, 375),
    (375, 500),
    (333, 501),
    (640, 480),
    (224, 224),
    (97, 61),
    (1200, 64),
    (50, 700),
    (8, 8),
    (1, 3),
]


def photograph(width, height, seed):
    """Smooth with noise and edges, like photographs."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = [127 + 60 * np.sin(x / (9.0 + c) + c) + 50 * np.cos(y / (13.0 - c)) for c in range(3)]
    picture = np.stack(waves, -1) + rng.normal(0, 12, (height, width, 3))
    picture[height // 3 : height // 2, width // 4 : width // 2] = (250, 20, 90)
    return Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))


def write_folder(folder):
    """Every supported kind of file, in two classes."""
    for number, (width, height) in enumerate(SIZES):
        picture = photograph(width, height, number)
        kind = folder / ("cats" if number % 2 else "dogs" if number % 3 else "ants")
        kind.mkdir(exist_ok=True)
        picture.save(kind / f"{number}_420.jpg", quality=88)
        picture.save(kind / f"{number}_444.jpeg", quality=95, subsampling=0)
        picture.save(kind / f"{number}_422.JPG", quality=70, subsampling=1)
        picture.save(kind / f"{number}_progressive.jpg", quality=80, progressive=True)
        picture.convert("L").save(kind / f"{number}_gray.jpg", quality=90)
        if WEBP:
            picture.save(kind / f"{number}.webp", quality=85)
            picture.save(kind / f"{number}_lossless.webp", lossless=True)
        picture.convert("CMYK").save(kind / f"{number}_cmyk.jpg", quality=90)
        picture.save(kind / f"{number}.png")
        picture.convert("P", palette=Image.Palette.ADAPTIVE).save(kind / f"{number}_palette.png")
        picture.convert("L").save(kind / f"{number}_gray.png")
    (folder / "cats" / "notes.txt").write_text("no picture")


def bilinear(picture, size):
    """Resizes like Pillow: across, then down. Version 13 uses the other order for some sizes."""
    return picture.resize((size[0], picture.size[1]), BILINEAR).resize(size, BILINEAR)


class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name) / "train"
        cls.folder.mkdir()
        write_folder(cls.folder)
        cls.files = sorted(
            (path for path in cls.folder.glob("*/*") if path.suffix != ".txt"),
            key=lambda path: (path.parent.name, path.name),
        )

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()


class SamePixelsTest(Folder):
    def picture(self, number):
        with Image.open(self.files[number]) as picture:
            return picture.convert("RGB")

    def test_the_middle_is_that_of_pillow_bit_for_bit(self):
        for size, resize in ((224, None), (64, None), (160, 160), (33, 100)):
            shorter = size * 256 // 224 if resize is None else resize
            source = images(self.folder, size=size, train=False, resize=resize, normalize=False)
            self.assertEqual(len(source), len(self.files))
            for number, (got, label) in enumerate(Loader(source, 1, shuffle=False)):
                picture = self.picture(number)
                width, height = picture.size
                if width <= height:
                    wanted = (shorter, int(shorter * height / width))
                else:
                    wanted = (int(shorter * width / height), shorter)
                resized = bilinear(picture, wanted)
                top, left = round((wanted[1] - size) / 2.0), round((wanted[0] - size) / 2.0)
                part = resized.crop((left, top, left + size, top + size))
                expected = np.asarray(part).transpose(2, 0, 1)
                np.testing.assert_array_equal(got[0].numpy(), expected, err_msg=str(self.files[number]))
                self.assertEqual(source.classes[label], self.files[number].parent.name)

    def test_random_parts_are_those_of_pillow_bit_for_bit(self):
        for size in (224, 48):
            source = images(self.folder, size=size, normalize=False, tell_crop=True)
            plain = images(self.folder, size=size)
            mirrored_ones = 0
            for epoch, (batches, floats) in enumerate(
                (Loader(source, 1, seed=seed, shuffle=False), Loader(plain, 1, seed=seed, shuffle=False))
                for seed in range(3)
            ):
                for number, ((got, _, crop), (values, _)) in enumerate(zip(batches, floats)):
                    picture = self.picture(number)
                    top, left, height, width, mirrored = crop[0].tolist()
                    self.assertTrue(0 <= top and top + height <= picture.size[1])
                    self.assertTrue(0 <= left and left + width <= picture.size[0])
                    part = picture.crop((left, top, left + width, top + height))
                    direct = np.asarray(part.resize((size, size), BILINEAR)).astype(int)
                    part = bilinear(part, (size, size))
                    self.assertLessEqual(np.abs(direct - np.asarray(part)).max(), 1)
                    if mirrored:
                        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
                        mirrored_ones += 1
                    expected = np.asarray(part).transpose(2, 0, 1)
                    message = f"{self.files[number]} {crop[0].tolist()}"
                    np.testing.assert_array_equal(got[0].numpy(), expected, err_msg=message)
                    pixels = torch.from_numpy(expected.copy()).float().div(255)
                    normal = (pixels - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
                    torch.testing.assert_close(values[0], normal, rtol=0, atol=1e-6)
            self.assertTrue(0.3 < mirrored_ones / (3 * len(self.files)) < 0.7)

    def test_the_same_as_torchvision(self):
        try:
            from torchvision.datasets import ImageFolder
            from torchvision.transforms import v2
            from torchvision.transforms.v2 import functional as F
        except ImportError:
            self.skipTest("needs torchvision")
        finish = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
        reference = ImageFolder(self.folder, v2.Compose([v2.Resize(256), v2.CenterCrop(224), *finish]))
        ours = images(self.folder, size=224, train=False)
        self.assertEqual(ours.class_to_idx, reference.class_to_idx)
        for (got, label), (expected, number) in zip(Loader(ours, 1, shuffle=False), reference):
            self.assertLessEqual((got[0] - expected).abs().max().item(), 1.01 / 255 / min(STD))
            self.assertEqual(label.item(), number)
        raw = ImageFolder(self.folder)
        for (got, _, crop), (picture, _) in zip(
            Loader(images(self.folder, tell_crop=True), 1, shuffle=False), raw
        ):
            top, left, height, width, mirrored = crop[0].tolist()
            part = F.resized_crop(picture, top, left, height, width, [224, 224], antialias=True)
            expected = v2.Compose(finish)(F.horizontal_flip(part) if mirrored else part)
            self.assertLessEqual((got[0] - expected).abs().max().item(), 1.01 / 255 / min(STD))
            # uint8 tensors are resized with another arithmetic there, which differs by one of 255 values.
            tensor = F.resized_crop(
                F.pil_to_tensor(picture), top, left, height, width, [224, 224], antialias=True
            )
            exact = torch.from_numpy(np.asarray(part).transpose(2, 0, 1).copy())
            self.assertLessEqual((tensor.int() - exact.int()).abs().max().item(), 1)

    def test_parts_are_as_random_as_those_of_torchvision(self):
        try:
            from torchvision.transforms import v2
        except ImportError:
            self.skipTest("needs torchvision")
        folder = Path(self.temporary.name) / "one" / "class"
        folder.mkdir(parents=True)
        photograph(400, 300, 1).save(folder / "a.jpg")
        source = images(folder.parent, size=8, tell_crop=True).subset([0])
        ours = []
        for epoch in range(1500):
            loader = Loader(source, 1, workers=0)
            loader.set_epoch(epoch)
            ours.append(next(iter(loader))[2][0].tolist()[:4])
        transform = v2.RandomResizedCrop(8)
        blank = [torch.empty(3, 300, 400)]
        keys = ("top", "left", "height", "width")
        theirs = [[transform.make_params(blank)[key] for key in keys] for _ in range(1500)]
        for column in range(4):
            a, b = (np.sort(np.asarray(rows)[:, column]) for rows in (ours, theirs))
            both = np.concatenate([a, b])
            apart = np.abs(
                np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)
            ).max()
            self.assertLess(apart, 1.95 * (2 / 1500) ** 0.5)  # Kolmogorov-Smirnov test, one in a thousand

    def test_scaled_decoding_is_nearly_the_same(self):
        folder = Path(self.temporary.name) / "large" / "class"
        folder.mkdir(parents=True)
        for number in range(4):
            photograph(1600, 1200, number).resize((3200, 2400), Image.Resampling.BICUBIC).save(
                folder / f"{number}.jpg"
            )
        exact, scaled = (
            images(folder.parent, 160, train=train, normalize=False, scaled_decode=flag)
            for train in (True,)
            for flag in (False, True)
        )
        for (a, _), (b, _) in zip(Loader(exact, 1, shuffle=False), Loader(scaled, 1, shuffle=False)):
            difference = (a.int() - b.int()).abs().float()
            self.assertLess(difference.mean().item(), 2.5)
            self.assertFalse(torch.equal(a, b))


class PropertyTest(Folder):
    def test_the_same_bytes_for_any_workers_ranks_and_start(self):
        source = images(self.folder, size=32, normalize=False)
        take = lambda **options: torch.cat([batch[0] for batch in Loader(source, seed=5, **options)])
        expected = take(batch_size=7, workers=0)
        for workers in (1, 2, 4):
            self.assertTrue(torch.equal(take(batch_size=7, workers=workers), expected))
        for world in (2, 3):
            ranks = [take(batch_size=5, rank=rank, world=world) for rank in range(world)]
            together = torch.stack(ranks, 1).flatten(0, 1)
            self.assertTrue(torch.equal(together[: len(expected)], expected))
        for start in random.Random(1).sample(range(len(source)), 6):
            loader = Loader(source, 4, seed=5)
            loader.load_state_dict({**loader.state_dict(), "sample": start})
            self.assertTrue(torch.equal(torch.cat([batch[0] for batch in loader]), expected[start:]))


class ErrorTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)
        (self.folder / "a").mkdir()
        for number in range(6):
            photograph(60, 50, number).save(self.folder / "a" / f"{number}.jpg")

    def test_what_is_wrong_is_named(self):
        for path, name in ((self.folder / "nothing", "nothing"), (self.folder / "a", "a")):
            with self.assertRaises(unidle.InputError) as caught:
                images(path)
            self.assertIn(name, str(caught.exception))
        (self.folder / "a" / "x.bmp").write_bytes(b"BM")
        with self.assertRaisesRegex(unidle.InputError, "x.bmp"):
            images(self.folder)
        with self.assertRaises(unidle.UsageError):
            images(self.folder, size=0)
        with self.assertRaises(unidle.UsageError):
            images(self.folder, scale=(0.5, 0.1))

    def test_a_link_that_leads_back_is_named(self):
        (self.folder / "a" / "again").symlink_to(".")
        with self.assertRaisesRegex(unidle.InputError, "a/again: is a link that leads back"):
            images(self.folder)

    def test_a_picture_that_ends_in_its_header_is_cut_off(self):
        path = self.folder / "a" / "3.jpg"
        path.write_bytes(path.read_bytes()[:100])
        with self.assertRaisesRegex(unidle.InputError, "3.jpg: .*cut off"):
            list(Loader(images(self.folder, 32), 6))

    def test_a_damaged_picture_fails_its_batch_or_is_skipped(self):
        whole = (self.folder / "a" / "3.jpg").read_bytes()
        (self.folder / "a" / "3.jpg").write_bytes(whole[: len(whole) // 3])
        source = images(self.folder, 40, train=False)
        with self.assertRaisesRegex(unidle.InputError, "3.jpg"):
            list(Loader(source, 2, shuffle=False))
        loader = Loader(source, 2, shuffle=False, on_error="skip")
        self.assertEqual(len(list(loader)), 3)
        self.assertEqual(loader.skipped, 1)

    def test_a_list_names_files_and_labels(self):
        lines = self.folder / "list.txt"
        lines.write_text("a/2.jpg 7\n\na/0.jpg\t3\r\n")
        source = images(lines, 16)
        self.assertEqual([label.item() for _, label in Loader(source, 1, shuffle=False)], [7, 3])
        for bad in ("a/2.jpg\n", "a/2.jpg x\n", "a/2.jpg -1\n", "\n", ""):
            lines.write_text("" if not bad.strip() else "a/0.jpg 1\n" + bad)
            with self.assertRaisesRegex(unidle.InputError, "list.txt"):
                images(lines)

    def test_a_transform_changes_each_picture(self):
        source = images(self.folder, 16, transform=lambda picture: picture * 0)
        for picture, _ in Loader(source, 4):
            self.assertEqual(picture.abs().max().item(), 0)
            self.assertEqual(tuple(picture.shape[1:]), (3, 16, 16))


if __name__ == "__main__":
    unittest.main()
