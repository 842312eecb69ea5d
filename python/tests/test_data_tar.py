"""unidle.data.tar: the samples of WebDataset archives, in every order, and faulty archives."""

import io
import json
import random
import tarfile
import tempfile
import unittest
from pathlib import Path

import package

import unidle
from unidle.data import Loader, images, tar

np, torch, Image = package.needs("numpy", "torch", "PIL.Image")

COUNT = 25


def picture(number):
    rng = np.random.default_rng(number)
    return Image.fromarray(rng.integers(0, 256, (40, 30 + number, 3), dtype=np.uint8))


def encoded(number, kind="PNG"):
    memory = io.BytesIO()
    picture(number).save(memory, kind)
    return memory.getvalue()


def array(number, dtype="<f4"):
    memory = io.BytesIO()
    np.save(memory, np.full((2, 3), number, dtype))
    return memory.getvalue()


def members_of(number):
    return {
        "png" if number % 2 else "JPG": encoded(number, "PNG" if number % 2 else "JPEG"),
        "box.npy": array(number, ">f4" if number % 3 else "<f4"),
        "cls": f"{number}\n".encode(),
        "json": json.dumps({"width": number, "of": {"score": number / 2, "good": True}}).encode(),
        "txt": b"not asked for",
    }


class InFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def write(self, name, samples, format=tarfile.PAX_FORMAT, folder="."):
        path = self.folder / name
        with tarfile.open(path, "w", format=format) as archive:
            archive.addfile(tarfile.TarInfo(folder + "/.hidden"))
            directory = tarfile.TarInfo(folder)
            directory.type = tarfile.DIRTYPE
            archive.addfile(directory)
            for key, members in samples:
                for suffix, content in members.items():
                    info = tarfile.TarInfo(f"{folder}/{key}.{suffix}")
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
        return path

    def shards(self, **options):
        numbers = list(range(COUNT))
        self.write("s_10.tar", [(f"{n:04}", members_of(n)) for n in numbers[15:]], **options)
        self.write("s_2.tar", [(f"{n:04}", members_of(n)) for n in numbers[:15]], **options)


FIELDS = ("png;jpg", "box.npy", "cls", "json:width", "json:of.score", "json:of.good")


class TarTest(InFolder):
    def test_samples_are_those_that_were_written(self):
        for format in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            for folder in (".", "a.b/" + "long" * 20, "d" * 90 + "/" + "e" * 100 + "/" + "f" * 30):
                if format == tarfile.USTAR_FORMAT and len(folder) > 100:
                    continue
                self.shards(format=format, folder=folder)
                source = tar(self.folder, FIELDS, size=24, train=False, normalize=False)
                self.assertEqual((len(source), source.facts["shards"]), (COUNT, 2))
                self.assertEqual(
                    [(field.name, field.dtype, field.shape) for field in source.fields],
                    [
                        ("png", "uint8", (3, 24, 24)),
                        ("box.npy", "float32", (2, 3)),
                        ("cls", "int64", ()),
                        ("width", "int64", ()),
                        ("of.score", "float32", ()),
                        ("of.good", "int64", ()),
                    ],
                )
                for number, (_, box, label, width, score, good) in enumerate(
                    Loader(source, 1, shuffle=False)
                ):
                    self.assertTrue(torch.equal(box[0], torch.full((2, 3), float(number))))
                    self.assertEqual((label.item(), width.item()), (number, number))
                    self.assertEqual((score.item(), good.item()), (number / 2, 1))

    def test_pictures_are_those_of_the_same_files(self):
        self.shards()
        (self.folder / "files").mkdir()
        lines = []
        for number in range(COUNT):
            suffix = next(iter(members_of(number)))
            (self.folder / "files" / f"{number}.{suffix.lower()}").write_bytes(members_of(number)[suffix])
            lines.append(f"files/{number}.{suffix.lower()} {number}\n")
        (self.folder / "list.txt").write_text("".join(lines))
        options = {"size": 16, "hue": 0.1, "orient": True}
        files = images(self.folder / "list.txt", **options)
        ours = tar(self.folder, ("jpg;png", "cls"), **options)
        for one, other in zip(Loader(files, 6, seed=4), Loader(ours, 6, seed=4)):
            self.assertTrue(torch.equal(one[0], other[0]))
            self.assertTrue(torch.equal(one[1], other[1]))

    def test_all_pictures_of_a_sample_are_cut_out_alike(self):
        samples = [(str(n), {"a.png": b"", "jpg": b"", "png": encoded(n)}) for n in range(4)]
        for _, members in samples:
            del members["a.png"]
            members["webp"] = members["jpg"] = members["png"]  # a mask beside the picture
        source = tar(self.write("m.tar", samples), ("png", "webp"), size=8)
        for one, other in Loader(source, 2):
            self.assertTrue(torch.equal(one, other))

    def test_fields_are_those_of_the_first_sample(self):
        path = self.write("a.tar", [("1", members_of(1)), ("2", {**members_of(3), "more": b""})])
        self.assertEqual([field.name for field in tar(path).fields], ["png", "box.npy", "cls"])

    def test_the_last_part_of_a_name_says_what_a_field_is(self):
        """As decoded by WebDataset."""
        simple = [(f"{n:04}", members_of(n)) for n in range(6)]
        named = []
        for key, members in simple:
            longer = {}
            for suffix, content in members.items():
                first = "Left." if suffix in ("png", "JPG") else "a.b."
                longer[first + suffix] = content
            named.append((key, longer))
        plain = tar(self.write("plain.tar", simple), FIELDS, size=12)
        fields = ("left.png;left.jpg", "a.b.box.npy", "a.b.cls")
        fields += tuple(f"a.b.json:{key}" for key in ("width", "of.score", "of.good"))
        path = self.write("named.tar", named)
        longer = tar(path, fields, size=12)
        self.assertEqual(
            [field.name for field in longer.fields],
            ["left.png", "a.b.box.npy", "a.b.cls", "width", "of.score", "of.good"],
        )
        for one, other in zip(Loader(plain, 4, seed=2), Loader(longer, 4, seed=2)):
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(one, other)))
        several = [("1", {"x.png": encoded(1), "y.png": encoded(2), "y.cls": b"3", "y.txt": b"no"})]
        self.assertEqual(
            [field.name for field in tar(self.write("several.tar", several)).fields],
            ["x.png", "y.png", "y.cls"],
        )
        for field in ("a.b.txt", "png.txt", "a.b.json", "a.json:", "txt:width", "left.png;a.b.cls"):
            with self.assertRaisesRegex(unidle.UsageError, "tar option fields"):
                tar(path, [field])

    def test_the_same_bytes_for_any_workers_ranks_and_start(self):
        self.shards()
        source = tar(self.folder, ("png;jpg", "cls"), size=12, normalize=False)
        take = lambda **options: torch.cat([batch[0] for batch in Loader(source, seed=5, **options)])
        expected = take(batch_size=4, workers=0)
        for workers in (1, 3):
            self.assertTrue(torch.equal(take(batch_size=4, workers=workers), expected))
        for world in (2, 3):
            ranks = [take(batch_size=3, rank=rank, world=world) for rank in range(world)]
            self.assertTrue(torch.equal(torch.stack(ranks, 1).flatten(0, 1)[:COUNT], expected))
        for start in random.Random(1).sample(range(COUNT), 5):
            loader = Loader(source, 4, seed=5)
            loader.load_state_dict({**loader.state_dict(), "sample": start})
            self.assertTrue(torch.equal(torch.cat([batch[0] for batch in loader]), expected[start:]))


class IndexTest(InFolder):
    def test_an_index_is_used_until_the_archive_changes(self):
        path = self.write("a.tar", [("1", members_of(1)), ("2", members_of(3))])
        index = Path(f"{path}.unidle-index")
        self.assertEqual(len(tar(path, ["cls"])), 2)
        before = (index.stat().st_mtime_ns, index.read_bytes())
        self.assertEqual(len(tar(path, ["cls"])), 2)
        self.assertEqual(before, (index.stat().st_mtime_ns, index.read_bytes()))
        self.write("a.tar", [("1", members_of(1)), ("2", members_of(3)), ("3", members_of(5))])
        self.assertEqual(len(tar(path, ["cls"])), 3)
        self.assertNotEqual(before[1], index.read_bytes())

    def test_a_damaged_index_is_made_anew(self):
        path = self.write("a.tar", [("1", members_of(1)), ("2", members_of(3))])
        index = Path(f"{path}.unidle-index")
        tar(path, ["cls"])
        whole = index.read_bytes()
        for at in range(0, len(whole), 7):
            for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
                index.write_bytes(damaged)
                self.assertEqual(len(tar(path, ["cls"])), 2)
                self.assertEqual(index.read_bytes(), whole)

    def test_an_index_that_cannot_be_written_is_done_without(self):
        path = self.write("a.tar", [("1", members_of(1))])
        Path(f"{path}.unidle-index").mkdir()
        self.assertEqual(len(tar(path, ["cls"])), 1)

    def test_what_is_left_out_is_told(self):
        path = self.write("s.tar", [("1", {"img": b"x", "cls": b"1", "json": b'{"n": 2}'})])
        for fields, left in ((None, ["img", "json"]), (["cls", "json:n"], ["img"])):
            source = tar(path, fields)
            self.assertEqual([field.name for field in source.fields][0], "cls")
            self.assertEqual(source.facts["left_out"], left)


class ToolsTest(InFolder):
    """Archives in the forms that tools make of folders."""

    def link(self, name, target, kind):
        info = tarfile.TarInfo(name)
        info.linkname, info.type = target, kind
        return info

    def archive(self, *members, format=tarfile.GNU_FORMAT):
        """Of names with contents, and of links."""
        path = self.folder / f"{len(list(self.folder.iterdir()))}.tar"
        with tarfile.open(path, "w", format=format) as archive:
            for member in members:
                if isinstance(member, tarfile.TarInfo):
                    archive.addfile(member)
                    continue
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
        return path

    def classes(self, path):
        return [int(one) for (one,) in Loader(tar(path, ("cls",)), 1, shuffle=False)]

    def test_links_lead_to_their_files(self):
        deep = "d" * 120
        for format in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            path = self.archive(
                (f"./{deep}/1.cls", b"1"),
                self.link(f"./{deep}/2.cls", f"./{deep}/1.cls", tarfile.LNKTYPE),
                self.link(f"./{deep}/3.cls", "../x/4.cls", tarfile.SYMTYPE),  # through the next link
                self.link("./x/4.cls", f"../{deep}/5.cls", tarfile.SYMTYPE),
                (f"./{deep}/5.cls", b"5"),
                self.link("latest", "/elsewhere", tarfile.SYMTYPE),
                format=format,
            )
            for _ in range(2):  # from the archive and from its index
                self.assertEqual(self.classes(path), [1, 1, 5, 5, 5])

    def test_a_link_that_leads_nowhere_is_named(self):
        for target in ("../1.cls", "2.cls"):
            path = self.archive(("1.cls", b"1"), self.link("2.cls", target, tarfile.SYMTYPE))
            with self.assertRaisesRegex(unidle.InputError, "has the link 2.cls, .*--dereference"):
                self.classes(path)

    def test_files_about_the_archive_are_no_samples(self):
        path = self.archive(("__info__/a.json", b"{}"), ("1.cls", b"1"), ("__x__/1.cls", b"9"))
        self.assertEqual(self.classes(path), [1])

    def test_arrays_by_columns_are_turned(self):
        for shape in ((2, 3), (2, 3, 4), (1, 5)):
            rows = np.arange(np.prod(shape), dtype=">i4").reshape(shape)
            memory = io.BytesIO()
            np.save(memory, np.asfortranarray(rows))
            ((found,),) = Loader(tar(self.archive(("1.npy", memory.getvalue()))), 1)
            self.assertEqual(found[0].tolist(), rows.tolist())

    def test_samples_whose_files_are_apart_are_named_with_the_way_out(self):
        path = self.archive(("1.cls", b"1"), ("2.cls", b"2"), ("1.txt", b"1"), ("2.txt", b"2"))
        with self.assertRaisesRegex(unidle.InputError, r":1: has no .cls .*tar --sort=name"):
            self.classes(path)

    def test_numbers_beyond_int64_are_named(self):
        for number, found in ((2**63 - 1, 2**63 - 1), (2**63, None)):
            path = self.archive(("1.json", b'{"a": %d}' % number))
            if found is None:
                with self.assertRaisesRegex(unidle.InputError, "1.json: has a number beyond int64 at a"):
                    tar(path, ("json:a",))
            else:
                self.assertEqual(int(next(iter(Loader(tar(path, ("json:a",)))))[0]), found)


class FaultTest(InFolder):
    def refuses(self, text, path, fields=("cls",), error=unidle.InputError, **options):
        with self.subTest(text), self.assertRaisesRegex(error, text):
            list(Loader(tar(path, fields, size=8, **options), 1, shuffle=False))

    def test_what_is_wrong_is_named(self):
        good = members_of(1)
        cases = (
            ("lacks.tar:./2: has no .cls", [("1", good), ("2", {"txt": b"x"})], ("cls",)),
            ("lacks.tar:./2: has no .jpg and no .png", [("1", good), ("2", {"cls": b"1"})], ("jpg;png",)),
            ("lacks.tar:./2.cls: expected a whole number", [("1", good), ("2", {"cls": b"cat"})], ("cls",)),
            ("lacks.tar:./2.png: is neither", [("1", good), ("2", {"png": b"nonsense"})], ("png",)),
            (
                "lacks.tar:./2.box.npy: is float64",
                [("1", good), ("2", {"box.npy": array(1, "f8")})],
                ("box.npy",),
            ),
            (
                "lacks.tar:./2.json: expected a number at of.score",
                [("1", good), ("2", {"json": b"{}"})],
                ("json:of.score",),
            ),
            (
                "lacks.tar:./2.json: expected a whole",
                [("1", good), ("2", {"json": b'{"width": 1.5}'})],
                ("json:width",),
            ),
            (
                "lacks.tar:./1: has neither picture nor npy nor cls, but ten, txt.gz",
                [("1", {"ten": b"x", "txt.gz": b"y"})],
                None,
            ),
            ("holds no samples", [], ("cls",)),
        )
        for text, samples, fields in cases:
            self.refuses(text, self.write("lacks.tar", samples), fields)
        with tarfile.open(self.folder / "twice.tar", "w") as archive:
            for _ in range(2):
                archive.addfile(tarfile.TarInfo("1.cls"))
        self.refuses("twice.tar:1.cls: is there twice", self.folder / "twice.tar")
        with tarfile.open(self.folder / "sparse.tar", "w", format=tarfile.PAX_FORMAT) as archive:
            info = tarfile.TarInfo("1.cls")
            info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
            archive.addfile(info)
        self.refuses("has the sparse file", self.folder / "sparse.tar")
        with tarfile.open(self.folder / "small.tar.gz", "w:gz") as archive:
            archive.addfile(tarfile.TarInfo("1.cls"))
        (self.folder / "z.tar").write_bytes((self.folder / "small.tar.gz").read_bytes() + bytes(1024))
        self.refuses("is compressed", self.folder / "z.tar")
        self.refuses("none.tar", self.folder / "none.tar")
        (self.folder / "empty").mkdir()
        self.refuses("has no \\*.tar", self.folder / "empty")
        path = self.write("good.tar", [("1", good)])
        for options in ({"fields": ["txt"]}, {"fields": "cls"}, {"fields": ["json"]}, {"tell_crop": True}):
            self.refuses("tar option", path, error=unidle.UsageError, **options)
        with self.assertRaisesRegex(unidle.UsageError, "tar option sise"):
            tar(path, sise=3)

    def test_every_cut_is_named_but_between_two_members(self):
        """At a tar without an end, as some programs write it."""
        whole = self.write("a.tar", [("1", {"cls": b"1"}), ("2", {"cls": b"2"})]).read_bytes()
        path = self.folder / "cut.tar"
        for cut in range(0, 3072, 97):
            path.write_bytes(whole[:cut])
            self.refuses("cut.tar", path)
        for cut, samples in ((2048, 1), (3072, 2), (3584, 2), (4096, 2)):
            path.write_bytes(whole[:cut])
            self.assertEqual(len(tar(path, ["cls"])), samples)

    def test_what_follows_the_end_is_told(self):
        whole = self.write("a.tar", [("1", {"cls": b"1"}), ("2", {"cls": b"2"})]).read_bytes()
        path = self.folder / "more.tar"
        path.write_bytes(whole[:2048] + bytes(512) + whole[2048:])
        self.refuses("more.tar: ends at byte 2048, and more follows at byte 2560", path)
        path.write_bytes(whole + b"x")
        self.refuses("more.tar: ends at byte 3072, and more follows at byte 10240", path)

    def test_another_archive_behind_the_end_is_told_after_any_padding(self):
        path = self.folder / "both.tar"
        formats = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
        for count in (1, 8, 9, 18):  # of 1 KiB each, after one for the folder: some fill their record
            for first, second in zip(formats, formats[1:] + formats[:1]):
                samples = [(str(n), {"cls": b"1"}) for n in range(count)]
                one = self.write("a.tar", samples, format=first).read_bytes()
                two = self.write("b.tar", samples, format=second).read_bytes()
                for padding in (0, 512, 9 * 1024, 10240, 65536, 65536 * 3):
                    padded = one + bytes(padding)
                    path.write_bytes(padded + two)
                    self.refuses(
                        f"both.tar: ends at byte .*more follows at byte {len(padded)} .*several", path
                    )
                    path.write_bytes(padded)
                    self.assertEqual(len(tar(path, ["cls"])), count)

    def test_a_sample_that_cannot_be_read_is_skipped_when_asked(self):
        samples = [(str(n), {"png": encoded(n) if n != 2 else b"\x89PNG\r\n\x1a\n"}) for n in range(5)]
        source = tar(self.write("a.tar", samples), ["png"], size=8)
        for policy, left in (("skip", 4), ("replace", 5)):
            loader = Loader(source, 5, on_error=policy, shuffle=False)
            self.assertEqual([len(batch[0]) for batch in loader], [left])
            self.assertEqual(loader.skipped, 1)


if __name__ == "__main__":
    unittest.main()
