"""unidle.data.sequences: batches of similar length, each text once an epoch, from every kind of file."""

import random
import tempfile
import unittest
from pathlib import Path

import package

import unidle
from unidle.data import Loader, sequences

torch = package.needs("torch")

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def peptides(count, seed=1):
    """Different texts of 5 to 50 letters."""
    rng = random.Random(seed)
    texts = set()
    while len(texts) < count:
        texts.add("".join(rng.choice(LETTERS) for _ in range(rng.randint(5, 50))))
    return sorted(texts, key=lambda text: rng.random())


def texts_of(batch, alphabet):
    tokens, lengths = batch[0], batch[1]
    texts = []
    for row, length in zip(tokens.tolist(), lengths.tolist()):
        assert not any(row[length:]) and all(row[:length])
        texts.append("".join(alphabet[token - 1] for token in row[:length]))
    return texts


class InFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.texts = peptides(900)

    def lines(self):
        path = self.folder / "peptides.txt"
        path.write_text("\n".join(self.texts))
        return path


class BatchesTest(InFolder):
    def test_every_text_comes_once_an_epoch_in_batches_under_the_budget(self):
        source = sequences(self.lines(), tokens_per_batch=512)
        alphabet = source.facts["alphabet"]
        self.assertEqual(alphabet, LETTERS)
        epochs = []
        loader = Loader(source, seed=2)
        places = filled = 0
        for _ in range(3):
            batches = list(loader)
            self.assertEqual(len(batches), len(loader))
            texts = [text for batch in batches for text in texts_of(batch, alphabet)]
            self.assertEqual(sorted(texts), sorted(self.texts))
            epochs.append(texts)
            for tokens, lengths in batches:
                self.assertLessEqual(tokens.numel(), 512)
                self.assertEqual(tokens.dtype, torch.int64)
                places += tokens.numel()
                filled += lengths.sum().item()
        self.assertNotEqual(epochs[0], epochs[1])
        self.assertAlmostEqual(source.facts["padding"], 1 - filled / places, places=9)
        self.assertLess(source.facts["padding"], 0.05)

    def test_texts_of_a_batch_meet_others_in_the_next_epoch(self):
        source = sequences(self.lines(), tokens_per_batch=512)
        company = []
        loader = Loader(source)
        for _ in range(2):
            company.append({frozenset(texts_of(batch, LETTERS)) for batch in loader})
        self.assertLess(len(company[0] & company[1]), len(company[0]) / 2)

    def test_the_same_bytes_for_any_workers_ranks_and_start(self):
        source = sequences(self.lines(), tokens_per_batch=300)
        take = lambda **options: [texts_of(batch, LETTERS) for batch in Loader(source, seed=4, **options)]
        expected = take(workers=0)
        for workers in (1, 3):
            self.assertEqual(take(workers=workers), expected)
        ranks = [take(rank=rank, world=3) for rank in range(3)]
        together = [batch for several in zip(*ranks) for batch in several]
        self.assertEqual(together[: len(expected)], expected)
        for start in range(0, len(source), 7):
            loader = Loader(source, seed=4)
            loader.load_state_dict({**loader.state_dict(), "sample": start})
            self.assertEqual([texts_of(batch, LETTERS) for batch in loader], expected[start:])

    def test_a_text_beyond_the_budget_is_a_batch_of_its_own(self):
        path = self.folder / "long.txt"
        path.write_text("AC\n" + "A" * 700 + "\nCA\n")
        batches = list(Loader(sequences(path, tokens_per_batch=100)))
        self.assertEqual(sorted(tuple(batch[0].shape) for batch in batches), [(1, 700), (2, 2)])


class FilesTest(InFolder):
    def all_texts(self, source):
        return sorted(text for batch in Loader(source) for text in texts_of(batch, source.facts["alphabet"]))

    def test_a_column_with_labels(self):
        path = self.folder / "peptides.csv"
        rows = "".join(f'"{text}",{len(text) % 3},x\r\n' for text in self.texts)
        path.write_bytes(b"\xef\xbb\xbfsequence,label,source\r\n" + rows.encode())
        source = sequences(path, column="sequence", label="label")
        self.assertEqual(self.all_texts(source), sorted(self.texts))
        for _, lengths, labels in Loader(source):
            self.assertTrue(torch.equal(labels, lengths % 3))

    def test_fasta_in_capitals(self):
        path = self.folder / "peptides.FASTA"
        path.write_text(">one\nACD\nEF\n>two\nGH\n")
        self.assertEqual(sequences(path).facts["texts"], 2)

    def test_fasta(self):
        path = self.folder / "peptides.fasta"
        with open(path, "w") as file:
            for number, text in enumerate(self.texts):
                file.write(f">peptide {number}\n{text[:20]}\n")
                if text[20:]:
                    file.write(f"{text[20:]}\n")
        self.assertEqual(self.all_texts(sequences(path)), sorted(self.texts))

    def test_an_alphabet_numbers_its_letters_from_one(self):
        path = self.folder / "a.txt"
        path.write_text("BA\n")
        tokens, lengths = next(iter(Loader(sequences(path, alphabet="XAB"))))
        self.assertEqual((tokens.tolist(), lengths.tolist()), ([[3, 2]], [2]))

    def test_what_is_wrong_is_named_with_its_line(self):
        path = self.folder / "a.csv"
        for text, options, where in (
            ("seq,label\nAC,1\nAC\n", {"column": "seq"}, "a.csv:3"),
            ("seq,label\nAC,1\n,2\n", {"column": "seq"}, "a.csv:3"),
            ("seq,label\nAC,one\n", {"column": "seq", "label": "label"}, "a.csv:2"),
            ("seq,label\nAC,1\n", {"column": "sequence"}, "a.csv:1"),
            ("seq\nAC\nAZ\n", {"column": "seq", "alphabet": "AC"}, "a.csv:3"),
            ('seq\n"AC\n', {"column": "seq"}, "a.csv:2"),
            ("seq\n", {"column": "seq"}, "a.csv"),
            ("", {"column": "seq"}, "a.csv"),
        ):
            path.write_text(text)
            with self.assertRaises(unidle.InputError) as caught:
                sequences(path, **options)
            self.assertIn(where, str(caught.exception))
        (self.folder / "a.fasta").write_text("AC\n")
        with self.assertRaisesRegex(unidle.InputError, "a.fasta:1"):
            sequences(self.folder / "a.fasta")

    def test_options_that_make_no_sense_are_refused(self):
        path = self.lines()
        for options in (
            {"tokens_per_batch": 0},
            {"padding": 1.0},
            {"alphabet": "AA"},
            {"label": "x"},
        ):
            with self.assertRaises(unidle.UsageError):
                sequences(path, **options)
        with self.assertRaises(unidle.UsageError):
            Loader(sequences(path), batch_size=8)


if __name__ == "__main__":
    unittest.main()
