"""unidle.predictors: Python functions, and ESMFold, as predictors of the feature cache."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import package

np = package.needs("numpy")

# The parts of transformers' ESMFold that the predictor uses. Its fold is an ideal helix, computed from the
# tokens: CA on a radius of 2.3 angstrom, advancing 100 degrees and 1.5 angstrom with each residue.
STAND_IN = """
import os, torch

class AutoTokenizer:
    @staticmethod
    def from_pretrained(name, local_files_only):
        if not os.path.isdir(name):
            raise OSError(f"{name} is no folder")
        return AutoTokenizer()

    def __call__(self, sequences, return_tensors, padding, add_special_tokens):
        assert return_tensors == "pt" and padding and not add_special_tokens
        longest = max(map(len, sequences))
        ids = torch.tensor([[ord(c) for c in s] + [0] * (longest - len(s)) for s in sequences])
        return {"input_ids": ids, "attention_mask": (ids > 0).long()}

class EsmForProteinFolding(torch.nn.Module):
    def __init__(self, rise):
        super().__init__()
        self.rise = torch.nn.Parameter(torch.tensor(rise))

    @staticmethod
    def from_pretrained(name, local_files_only):
        with open(os.path.join(name, "rise")) as file:
            return EsmForProteinFolding(float(file.read()))

    def forward(self, input_ids, attention_mask):
        if input_ids.numel() > 60:
            raise torch.cuda.OutOfMemoryError("no room")
        place = torch.arange(input_ids.shape[1])
        atom = torch.arange(14)
        turn = torch.deg2rad(100.0 * place[:, None] + 30.0 * (atom - 1))
        along = (self.rise * place[:, None]).expand(-1, 14)
        helix = torch.stack([2.3 * turn.cos(), 2.3 * turn.sin(), along], 2)
        atoms = torch.where(attention_mask[..., None, None] > 0, helix, torch.full((), 1e9))
        plddt = (input_ids.float() / 100)[..., None] * torch.linspace(0.5, 1, 37)
        return {"positions": torch.stack([torch.zeros_like(atoms), atoms]), "plddt": plddt}
"""


def frame(head, data=b""):
    text = json.dumps(head).encode()
    return struct.pack("<4sIQ", b"UPP1", len(text), len(data)) + text + data


def frames(data):
    """All frames that a program wrote."""
    while data:
        magic, head_bytes, data_bytes = struct.unpack_from("<4sIQ", data)
        assert magic == b"UPP1"
        data = data[16:]
        yield json.loads(data[:head_bytes]), data[head_bytes : head_bytes + data_bytes]
        data = data[head_bytes + data_bytes :]


def arrays(items, data):
    """The items of a result: dicts of arrays, or error messages."""
    answers = []
    for item in items:
        if "error" in item:
            answers.append(item["error"])
            continue
        answers.append({})
        for tensor in item["tensors"]:
            bytes_ = int(np.prod(tensor["shape"])) * np.dtype(tensor["dtype"]).itemsize
            answers[-1][tensor["name"]] = np.frombuffer(data[:bytes_], tensor["dtype"]).reshape(
                tensor["shape"]
            )
            data = data[bytes_:]
    assert not data
    return answers


class PredictorTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="unidle-predictors-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, text):
        (self.folder / name).write_text(textwrap.dedent(text))
        return str(self.folder / name)

    def environment(self):
        paths = [str(self.folder), str(package.BUILD / "share" / "unidle" / "python")]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "UNIDLE_HOME": str(self.folder / "home")}

    def ask(self, command, batches, parameters=None):
        """A program's identity, and its answers to each batch."""
        talk = frame({"type": "hello", "protocol": 1, "parameters": parameters or {}})
        for number, inputs in enumerate(batches):
            lengths = [len(each) for each in inputs]
            talk += frame({"type": "batch", "batch": number, "lengths": lengths}, b"".join(inputs))
        ran = subprocess.run(
            [sys.executable, *command],
            input=talk + frame({"type": "bye"}),
            capture_output=True,
            env=self.environment(),
            timeout=120,
        )
        self.assertEqual(ran.returncode, 0, ran.stderr.decode())
        (ready, _), *results = frames(ran.stdout)
        self.assertEqual([head["batch"] for head, _ in results], list(range(len(batches))))
        return ready, [arrays(head["items"], data) for head, data in results]

    def warm(self, inputs, command, *options):
        """The outcome of unidle cache warm: exit code, document, standard error."""
        (self.folder / "inputs").write_text("\n".join(inputs) + "\n")
        cache = str(self.folder / "cache")
        ran = subprocess.run(
            [package.BUILD / "bin" / "unidle", "cache", "warm", cache, "--inputs", self.folder / "inputs"]
            + ["--format", "json", *options, "--", sys.executable, *command],
            capture_output=True,
            env=self.environment(),
            timeout=300,
        )
        return ran.returncode, json.loads(ran.stdout) if ran.stdout else None, ran.stderr.decode()


class ServeTest(PredictorTest):
    PROGRAM = """
        import os
        import numpy as np
        from unidle.predictors import Refused, leave, serve

        def start(parameters):
            print("printed by Python")
            os.system("echo printed by a child")
            scale = parameters.get("scale", 1)
            if scale == 0:
                leave("scale must not be 0")

            def predict(inputs):
                return [
                    Refused("is empty of vowels")
                    if not set(text) & set(b"aeiou")
                    else {
                        "letters": np.frombuffer(text, np.uint8) * np.uint8(scale),
                        "sums": np.cumsum(np.frombuffer(text, np.uint8)).astype(">i8"),
                        "turned": np.arange(6, dtype=np.float32).reshape(2, 3).T,
                        "length": np.float64(len(text)),
                        "none": np.empty((0, 3), np.int32),
                    }
                    for text in inputs
                ]

            return "letters", "3", predict

        serve(start)
    """

    def test_answers_have_the_values_of_the_function(self):
        program = self.write("program.py", self.PROGRAM)
        ready, (first, second) = self.ask([program], [[b"abe", b"xyz"], [b"i"]], {"scale": 2})
        self.assertEqual((ready["identity"], ready["version"], ready["protocol"]), ("letters", "3", 1))
        self.assertEqual(first[0]["letters"].tolist(), [194, 196, 202])
        self.assertEqual(first[0]["sums"].tolist(), [97, 195, 296])
        self.assertEqual(first[0]["turned"].tolist(), [[0, 3], [1, 4], [2, 5]])
        self.assertEqual((first[0]["length"].shape, first[0]["none"].shape), ((), (0, 3)))
        self.assertEqual(first[0]["length"], 3)
        self.assertEqual(first[1], "is empty of vowels")
        self.assertEqual(second[0]["sums"].tolist(), [105])

    def test_cache_warm_runs_it(self):
        program = self.write("program.py", self.PROGRAM)
        code, done, said = self.warm(["abe", "xyz", "io"], [program])
        self.assertEqual(code, 1, said)
        self.assertEqual((done["computed"], done["failed"]), (2, 1))
        self.assertEqual(done["failures"][0]["reason"], "is empty of vowels")
        code, done, said = self.warm(["abe", "io"], [program])
        self.assertEqual((code, done["there"], done["computed"]), (0, 2, 0), said)

    def test_what_leaves_is_not_started_again(self):
        program = self.write("program.py", 'open("starts", "a").write("x")\n' + textwrap.dedent(self.PROGRAM))
        os.chdir(self.folder)
        code, _, said = self.warm(["abe"], [program], "--parameters", '{"scale": 0}')
        self.assertEqual(code, 2)
        self.assertIn("scale must not be 0", said)
        self.assertEqual((self.folder / "starts").read_text(), "x")


class EsmfoldTest(PredictorTest):
    PROGRAM = ("-m", "unidle.predictors.esmfold")

    def setUp(self):
        super().setUp()
        package.needs("torch")
        self.write("transformers.py", STAND_IN)
        self.weights = self.make_weights("weights", 1.5)

    def make_weights(self, name, rise):
        (self.folder / name).mkdir()
        self.write(f"{name}/rise", str(rise))
        return str(self.folder / name)

    def test_features_are_those_of_the_fold(self):
        sequences = [b"ACDEFGHIKL", b"MNP", b"acd", b"", b"QRSTVWYX"]
        ready, (answers,) = self.ask([*self.PROGRAM, "--model", self.weights, "--device", "cpu"], [sequences])
        self.assertEqual(ready["identity"], "esmfold")
        self.assertEqual(answers[2], "is no sequence of amino acids")
        self.assertEqual(answers[3], "is no sequence of amino acids")
        for sequence, answer in zip(sequences, answers):
            if isinstance(answer, str):
                continue
            count = len(sequence)
            apart = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
            distances = np.hypot(2 * 2.3 * np.sin(np.radians(50 * apart)), 1.5 * apart)
            np.testing.assert_allclose(answer["distances"], distances, atol=1e-4)
            np.testing.assert_array_equal(answer["contacts"], distances < 8)
            self.assertEqual(answer["contacts"].dtype, np.uint8)
            self.assertEqual(answer["backbone"].shape, (count, 4, 3))
            np.testing.assert_allclose(
                answer["positions"], answer["backbone"][:, 1] - answer["backbone"][:, 1].mean(0), atol=1e-5
            )
            plddt = np.frombuffer(sequence, np.uint8) * np.linspace(0.5, 1, 37)[1]
            np.testing.assert_allclose(answer["confidence"], plddt, rtol=1e-5)
            self.assertEqual(answer["confidence"].dtype, np.float32)

    def test_batches_that_do_not_fit_are_halved(self):
        sequences = [b"A" * 20, b"C" * 19, b"D" * 18, b"E" * 61, b"F" * 5]
        _, (answers,) = self.ask([*self.PROGRAM, "--model", self.weights, "--device", "cpu"], [sequences])
        self.assertIn("61 residues need more memory", answers[3])
        self.assertEqual([len(answers[place]["confidence"]) for place in (0, 1, 2, 4)], [20, 19, 18, 5])

    def test_other_weights_are_another_version(self):
        versions = []
        for name, rise in (("same", 1.5), ("other", 1.6)):
            weights = self.make_weights(name, rise)
            versions.append(
                self.ask([*self.PROGRAM, "--model", weights, "--device", "cpu"], [])[0]["version"]
            )
        here = self.ask([*self.PROGRAM, "--model", self.weights, "--device", "cpu"], [])[0]["version"]
        self.assertEqual(here, versions[0])
        self.assertNotEqual(here, versions[1])

    def test_cache_warm_keeps_them(self):
        command = [*self.PROGRAM, "--model", self.weights, "--device", "cpu"]
        code, done, said = self.warm(["ACDEF", "GHIKL"], command)
        self.assertEqual((code, done and done["computed"]), (0, 2), said)
        code, done, said = self.warm(["ACDEF", "GHIKL"], command)
        self.assertEqual((code, done["there"]), (0, 2), said)

    def test_what_is_missing_is_named_with_what_to_do(self):
        code, _, said = self.warm(["ACDEF"], [*self.PROGRAM, "--model", "no/such/folder"])
        self.assertEqual(code, 2)
        self.assertIn("--download", said)
        self.write("transformers.py", "raise ImportError(\"No module named 'transformers'\")")
        code, _, said = self.warm(["ACDEF"], self.PROGRAM)
        self.assertEqual(code, 2)
        self.assertIn("pip install torch transformers", said)

    def test_it_says_that_it_is_run_by_another_program(self):
        ran = subprocess.run(
            [sys.executable, *self.PROGRAM],
            input=b"ACDEFGHIKLMNPQRSTVWY",
            capture_output=True,
            env=self.environment(),
        )
        self.assertEqual(ran.returncode, 2)
        self.assertIn(b"unidle cache warm", ran.stderr)
