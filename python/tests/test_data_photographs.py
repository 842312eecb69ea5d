"""unidle.data.images: photographs turned according to their EXIF, and colours changed as in torchvision."""

import colorsys
import struct
import tempfile
import unittest
from pathlib import Path

import package

import unidle
from unidle.data import Loader, images

np, torch, Image, ImageOps = package.needs("numpy", "torch", "PIL.Image", "PIL.ImageOps")

BILINEAR = Image.Resampling.BILINEAR


def photograph(width, height, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = [127 + 60 * np.sin(x / (9.0 + c) + c) + 50 * np.cos(y / (13.0 - c)) for c in range(3)]
    picture = np.stack(waves, -1) + rng.normal(0, 12, (height, width, 3))
    return Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))


def bilinear(picture, size):
    """Resizes like Pillow up to version 12: across, then down."""
    return picture.resize((size[0], picture.size[1]), BILINEAR).resize(size, BILINEAR)


class InFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name) / "class"
        self.folder.mkdir()

    def batches(self, **options):
        loader = {name: options.pop(name) for name in ("seed", "workers") if name in options}
        return list(Loader(images(self.folder.parent, **options), 1, shuffle=False, **loader))


class OrientationTest(InFolder):
    def write(self):
        for number in range(10):  # 0 and 9 mean nothing
            exif = Image.Exif()
            exif[0x010F] = "a maker"
            exif[0x0112] = number
            for width, height in ((93, 61), (60, 130)):
                picture = photograph(width, height, number)
                name = f"{number}_{width}"
                picture.save(self.folder / f"{name}.jpg", exif=exif.tobytes(), quality=90)
                picture.save(self.folder / f"{name}.png", exif=exif.tobytes())
        plain = photograph(90, 50, 1)
        plain.save(self.folder / "plain.jpg")
        xmp = b'<x xmlns:tiff="t"><tiff:Orientation>6</tiff:Orientation></x>'
        plain.save(self.folder / "xmp.jpg", xmp=xmp)
        for order in ("<", ">"):  # an orientation of four bytes, as written by some programs
            head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
            entry = struct.pack(order + "HHHII", 1, 0x0112, 4, 1, 8)
            name = f"long_{'little' if order == '<' else 'big'}.jpg"
            plain.save(self.folder / name, exif=b"Exif\0\0" + head + entry + b"\0\0\0\0")

    def test_the_pixels_are_those_of_exif_transpose(self):
        self.write()
        files = sorted(self.folder.iterdir())
        for size, resize in ((32, 40), (48, 48)):
            batches = self.batches(size=size, resize=resize, train=False, normalize=False, orient=True)
            for path, (got, _) in zip(files, batches):
                with Image.open(path) as stored:
                    picture = ImageOps.exif_transpose(stored).convert("RGB")
                width, height = picture.size
                shorter = min(width, height)
                wanted = (int(resize * width / shorter), int(resize * height / shorter))
                top, left = round((wanted[1] - size) / 2.0), round((wanted[0] - size) / 2.0)
                part = bilinear(picture, wanted).crop((left, top, left + size, top + size))
                np.testing.assert_array_equal(
                    got[0].numpy(), np.asarray(part).transpose(2, 0, 1), err_msg=path.name
                )

    def test_random_parts_are_those_of_exif_transpose(self):
        self.write()
        files = sorted(self.folder.iterdir())
        options = {"size": 24, "normalize": False, "orient": True, "tell_crop": True}
        for path, (got, _, crop) in zip(files, self.batches(seed=3, **options)):
            with Image.open(path) as stored:
                picture = ImageOps.exif_transpose(stored).convert("RGB")
            top, left, height, width, mirrored = crop[0].tolist()
            part = bilinear(picture.crop((left, top, left + width, top + height)), (24, 24))
            part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else part
            np.testing.assert_array_equal(
                got[0].numpy(), np.asarray(part).transpose(2, 0, 1), err_msg=path.name
            )

    def test_pictures_are_as_they_are_stored_unless_asked(self):
        self.write()
        options = {"size": 32, "resize": 40, "train": False, "normalize": False}
        stored = self.batches(**options)
        for path in self.folder.glob("*.jpg"):
            with Image.open(path) as picture:  # the same pixels without the tag
                data = path.read_bytes()
            path.write_bytes(data.replace(b"Exif\0\0", b"Fixe\0\0").replace(b"tiff:Or", b"tiff:or"))
        for path in self.folder.glob("*.png"):
            with Image.open(path) as picture:
                picture.load()
                plain = Image.fromarray(np.asarray(picture))
            plain.save(path)
        for one, other, turned in zip(stored, self.batches(**options), self.batches(orient=True, **options)):
            self.assertTrue(torch.equal(one[0], other[0]))
            self.assertTrue(torch.equal(one[0], turned[0]))

    def test_scaled_decoding_is_nearly_the_same(self):
        for number in range(1, 9):
            exif = Image.Exif()
            exif[0x0112] = number
            photograph(1003, 757, number).save(self.folder / f"{number}.jpg", exif=exif.tobytes(), quality=95)
        options = {"size": 64, "train": False, "normalize": False, "orient": True}
        scaled = self.batches(scaled_decode=True, **options)
        for (exact, _), (nearly, _) in zip(self.batches(**options), scaled):
            difference = (exact.int() - nearly.int()).abs().float()
            self.assertLess(difference.mean().item(), 2.5)

    def test_bytes_that_are_no_exif_are_passed_over(self):
        picture = photograph(60, 40, 1)
        exif = Image.Exif()
        exif[0x0112] = 6
        whole = b"Exif\0\0" + exif.tobytes()[6:]
        rng = np.random.default_rng(2)
        for cut in range(7, len(whole)):
            damaged = bytearray(whole[:cut])
            damaged[int(rng.integers(6, cut))] ^= 0xFF
            picture.save(self.folder / f"{cut}.jpg", exif=bytes(damaged))
        self.assertEqual(len(self.batches(size=16, orient=True)), len(whole) - 7)


def gray(rgb):
    return np.floor(rgb @ np.array([0.2989, 0.587, 0.114]))


def changed(rgb, step, factor):
    """One step on float values of integers."""
    if step == 0:
        return np.floor(np.clip(rgb * factor, 0, 255))
    if step in (1, 2):
        other = gray(rgb)[..., None] if step == 2 else gray(rgb).mean()
        return np.floor(np.clip(rgb * factor + other * (1 - factor), 0, 255))

    def turned(pixel):
        hue, saturation, value = colorsys.rgb_to_hsv(*(pixel / 255.0))
        return colorsys.hsv_to_rgb((hue + factor) % 1.0, saturation, value)

    return np.floor(np.apply_along_axis(turned, -1, rgb) * (256 - 1e-3))


FULL = {"brightness": 0.4, "contrast": (0.5, 1.8), "saturation": 0.7, "hue": 0.2}


class ColorsTest(InFolder):
    def setUp(self):
        super().setUp()
        for number in range(8):
            photograph(40 + number, 30, number).save(self.folder / f"{number}.png")
        Image.new("RGB", (20, 20), (90, 90, 90)).save(self.folder / "gray.png")
        Image.new("RGB", (20, 20)).save(self.folder / "black.png")

    def compare(self, change, most, **options):
        """Compares the samples with changed colours to `change` of the original ones."""
        plain = {"size": 17, "normalize": False, "tell_crop": True}
        orders = set()
        for seed in range(4):
            before = self.batches(seed=seed, **plain)
            after = self.batches(seed=seed, **plain, **options)
            for (one, _, crop), (other, _, same_crop, colors) in zip(before, after):
                self.assertTrue(torch.equal(crop, same_crop))
                factors, order = colors[0, :4].tolist(), [int(step) for step in colors[0, 4:]]
                self.assertEqual(sorted(order), [0, 1, 2, 3])
                orders.add(tuple(order))
                expected = change(one[0], factors, order)
                difference = (other[0].int() - expected.int()).abs()
                self.assertLessEqual(difference.max().item(), most, f"{factors} {order}")
                self.assertLess((difference > 0).float().mean().item(), 0.02 * most)
        return orders

    def test_each_step_is_the_rule(self):
        """Within 1 of 255: values on the edge between two integers."""
        for step, name in enumerate(FULL):

            def change(picture, factors, order, step=step):
                rgb = picture.permute(1, 2, 0).numpy().astype(np.float64)
                return torch.from_numpy(changed(rgb, step, factors[step])).permute(2, 0, 1)

            self.compare(change, 1, **{name: FULL[name]})

    def test_the_order_is_random_and_factors_are_in_their_bounds(self):
        orders = self.compare(lambda picture, factors, order: picture, 255, **FULL)
        self.assertGreater(len(orders), 10)
        for _, _, _, colors in self.batches(size=8, tell_crop=True, seed=9, **FULL):
            brightness, contrast, saturation, hue = colors[0, :4].tolist()
            self.assertTrue(0.6 <= brightness <= 1.4 and 0.5 <= contrast <= 1.8)
            self.assertTrue(0.3 <= saturation <= 1.7 and -0.2 <= hue <= 0.2)

    def test_the_same_as_torchvision(self):
        """Within 1 of 255 per step, which later steps may amplify."""
        try:
            from torchvision.transforms.v2 import functional as F
        except ImportError:
            self.skipTest("needs torchvision")
        steps = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)

        def change(picture, factors, order, only=None):
            for step in order if only is None else [only]:
                picture = steps[step](picture, factors[step])
            return picture

        for step, name in enumerate(FULL):
            self.compare(lambda *drawn, only=step: change(*drawn, only=only), 1, **{name: FULL[name]})
        self.compare(change, 8, **FULL)

    def test_the_same_bytes_for_any_workers(self):
        source = images(self.folder.parent, 16, normalize=False, **FULL)
        takes = [
            torch.cat([batch[0] for batch in Loader(source, 3, seed=2, workers=workers)])
            for workers in (0, 1, 3)
        ]
        for other in takes[1:]:
            self.assertTrue(torch.equal(takes[0], other))
        self.assertFalse(torch.equal(takes[0][0], takes[0][1]))

    def test_what_makes_no_sense_is_refused(self):
        for options in (
            {"brightness": -1},
            {"brightness": "much"},
            {"contrast": (1, 0.5)},
            {"saturation": (1,)},
            {"hue": 0.6},
            {"hue": (0.1, float("nan"))},
            {"brightness": 0.2, "train": False},
            {"orient": 1},
        ):
            with self.subTest(options), self.assertRaisesRegex(unidle.UsageError, "images option"):
                images(self.folder.parent, **options)


if __name__ == "__main__":
    unittest.main()
