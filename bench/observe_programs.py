"""`unidle run` on public programs against timing lines put into them by hand.

    python bench/observe_programs.py FOLDER [--only NAME ...] [--pairs N]

FOLDER holds the programs as their repositories have them (mnist, dcgan and word_language_model of pytorch/examples, nanoGPT,
Lightning's backbone_image_classifier.py in lightning, stanford_alpaca); what is not there is left out and named. Each is
copied with the edits below, which time its steps and its waiting for data, gets generated data, and runs in alternating
pairs, bare and observed. The table compares
the record of an observed run with the hand-made times of the same run: steps, share of the step time that waits for input,
samples/s; then how much longer the steps of the observed run took, and what `unidle diagnose` finds above info.
"""

import argparse
import json
import os
import random
import shutil
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNIDLE = Path(os.environ.get("UNIDLE_BIN", ROOT / "build" / "bin")) / "unidle"

HAND = '''
import atexit, json, os, time
_mark, _steps, _samples, _input, _total = None, 0, 0, 0.0, 0.0
def mark():
    global _mark
    _mark = time.perf_counter()
def fetch(function, *args):
    global _input
    begin = time.perf_counter()
    try:
        return function(*args)
    finally:
        _input += time.perf_counter() - begin
def step(samples):
    global _mark, _steps, _samples, _total
    now = time.perf_counter()
    _total += now - _mark
    _steps, _samples, _mark = _steps + 1, _samples + samples, now
class Timed:
    def __init__(self, loader):
        self.__dict__["loader"] = loader
    def __getattr__(self, name):
        return getattr(self.loader, name)
    def __setattr__(self, name, value):
        setattr(self.loader, name, value)
    def __len__(self):
        return len(self.loader)
    def __iter__(self):
        mark()
        iterator = fetch(iter, self.loader)
        while True:
            try:
                batch = fetch(next, iterator)
            except StopIteration:
                return
            yield batch
def _write():
    with open(os.environ["HAND_OUT"], "w") as file:
        json.dump({"steps": _steps, "input_s": _input, "samples": _samples, "total_s": _total}, file)
atexit.register(_write)
'''


def digits(folder, train, test):
    """Pictures in the format of MNIST."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    draw = random.Random(0)
    for name, count in (("train", train), ("t10k", test)):
        pictures = draw.randbytes(count * 784)
        labels = bytes(draw.randrange(10) for _ in range(count))
        (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + pictures)
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels)


def prose(path, words):
    draw = random.Random(0)
    known = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(2, 8))) for _ in range(500)]
    text, line = [], []
    for _ in range(words):
        line.append(draw.choice(known))
        if len(line) == 12:
            text.append(" ".join(line) + "\n")
            line = []
    path.write_text("".join(text))


def prepare_words(copy):
    (copy / "text").mkdir()
    for name, words in (("train", 40000), ("valid", 4000), ("test", 4000)):
        prose(copy / "text" / f"{name}.txt", words)


def prepare_nanogpt(copy):
    folder = copy / "data" / "made"
    folder.mkdir(parents=True)
    draw = random.Random(0)
    for name in ("train", "val"):
        (folder / f"{name}.bin").write_bytes(struct.pack("<200000H", *(draw.randrange(50) for _ in range(200000))))


def prepare_alpaca(copy):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    prose(copy / "text.txt", 20000)
    lines = (copy / "text.txt").read_text().splitlines()
    (copy / "data.json").write_text(json.dumps([{"instruction": one, "input": "", "output": other} for one, other in zip(lines[::2], lines[1::2])]))
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"unk_token": "<unk>", "eos_token": "</s>", "bos_token": "<s>", "pad_token": "[PAD]"}
    tokenizer.train([str(copy / "text.txt")], trainers.BpeTrainer(vocab_size=800, special_tokens=list(special.values())))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(copy / "tiny")
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer.get_vocab()), n_embd=64, n_layer=2, n_head=4, n_positions=512)).save_pretrained(copy / "tiny")


LOOP = "for batch_idx, (data, target) in enumerate(train_loader):"
MNIST_EDITS = [(LOOP, LOOP.replace("train_loader", "hand.Timed(train_loader)")), ("        optimizer.step()\n", "        optimizer.step(); hand.step(len(data))\n")]


def mnist(workers):
    return {"folder": "mnist", "script": "main.py", "prepare": lambda copy: digits(copy.parent / "data", 12000, 1000),
            "arguments": ["--epochs", "2", "--batch-size", "64"],
            "edits": MNIST_EDITS + [("train_kwargs = {'batch_size': args.batch_size}", "train_kwargs = {'batch_size': args.batch_size, 'num_workers': %d}" % workers)]}


PROGRAMS = {
    "mnist": mnist(0),
    "mnist, a worker": mnist(1),
    "dcgan": {
        "folder": "dcgan", "script": "main.py", "arguments": ["--dataset", "fake", "--imageSize", "64", "--batchSize", "8", "--ngf", "16", "--ndf", "16",
                                                              "--niter", "1", "--workers", "1", "--outf", "."],
        "edits": [("in enumerate(dataloader, 0):", "in enumerate(hand.Timed(dataloader), 0):"),
                  ("        optimizerG.step()\n", "        optimizerG.step(); hand.step(real_cpu.size(0))\n")]},
    "word_language_model": {
        "folder": "word_language_model", "script": "main.py", "prepare": prepare_words,
        "arguments": ["--data", "text", "--epochs", "2", "--use-optimizer", "--emsize", "64", "--nhid", "64", "--batch_size", "16"],
        "edits": [("    model.train()\n    total_loss = 0.\n", "    model.train()\n    hand.mark()\n    total_loss = 0.\n"),
                  ("data, targets = get_batch(train_data, i)", "data, targets = hand.fetch(get_batch, train_data, i)"),
                  ("            optimizer.step()\n", "            optimizer.step()\n            hand.step(len(data))\n")]},
    "nanoGPT": {
        "folder": "nanoGPT", "script": "train.py", "prepare": prepare_nanogpt,
        "arguments": ["--dataset=made", "--device=cpu", "--compile=False", "--eval_iters=5", "--eval_interval=100", "--log_interval=10", "--block_size=64",
                      "--batch_size=12", "--n_layer=3", "--n_head=4", "--n_embd=96", "--max_iters=200", "--dropout=0.0", "--gradient_accumulation_steps=2",
                      "--dtype=float32"],
        "edits": [("        X, Y = get_batch('train')\n        # backward", "        X, Y = hand.fetch(get_batch, 'train')\n        # backward"),
                  ("    for micro_step in range(gradient_accumulation_steps):", "    hand.mark()\n    for micro_step in range(gradient_accumulation_steps):"),
                  ("    scaler.update()\n", "    scaler.update(); hand.step(batch_size * gradient_accumulation_steps)\n")]},
    "Lightning": {
        "folder": "lightning", "script": "backbone_image_classifier.py", "prepare": lambda copy: digits(copy / "Datasets", 60000, 1000),
        "arguments": ["--trainer.max_epochs=1", "--trainer.limit_train_batches=400", "--trainer.limit_val_batches=20", "--trainer.accelerator=cpu",
                      "--trainer.limit_test_batches=5", "--trainer.limit_predict_batches=5", "--trainer.enable_progress_bar=false"],
        "edits": [('path.join(path.dirname(__file__), "..", "..", "Datasets")', '"Datasets"'),
                  ("from lightning.pytorch.demos.mnist_datamodule import MNIST\n", "from torchvision.datasets import MNIST\n"),
                  ("return DataLoader(self.mnist_train, batch_size=self.batch_size)", "return hand.loader(DataLoader)(self.mnist_train, batch_size=self.batch_size)"),
                  ("    def validation_step(", "    def on_train_batch_end(self, outputs, batch, batch_idx):\n        hand.step(len(batch[0]))\n\n    def validation_step(")]},
    "Hugging Face Trainer": {
        "folder": "stanford_alpaca", "script": "train.py", "prepare": prepare_alpaca,
        "arguments": ["--model_name_or_path", "tiny", "--data_path", "data.json", "--output_dir", "out", "--use_cpu", "true", "--max_steps", "150",
                      "--per_device_train_batch_size", "4", "--report_to", "none", "--save_strategy", "no", "--disable_tqdm", "true"],
        # utils asks for a module of another service that training does not need
        "edits": [("import utils\n", ""), ("utils.jload(data_path)", "__import__('json').load(open(data_path))"),
                  ("trainer = Trainer(model=model, tokenizer=tokenizer,", "trainer = hand.trainer(Trainer)(model=model, processing_class=tokenizer,")]},
}

FRAMEWORKS = '''
def loader(DataLoader):
    class Loader(DataLoader):
        def __iter__(self):
            return iter(Timed.__iter__(_Plain(super())))
    return Loader
class _Plain:
    def __init__(self, parent):
        self.loader = self
        self.parent = parent
    def __iter__(self):
        return self.parent.__iter__()
def trainer(Trainer):
    class HandTrainer(Trainer):
        def get_train_dataloader(self):
            return Timed(super().get_train_dataloader())
        def training_step(self, model, inputs, *args, **kwargs):
            self._hand_samples = len(inputs["input_ids"])
            return super().training_step(model, inputs, *args, **kwargs)
    original = HandTrainer.__init__
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        from transformers import TrainerCallback
        outer = self
        class Count(TrainerCallback):
            def on_step_end(self, *args, **kwargs):
                step(outer._hand_samples)
        self.add_callback(Count)
    HandTrainer.__init__ = init
    return HandTrainer
'''


def make_copy(program, source, folder):
    copy = folder / "program"
    shutil.copytree(source / program["folder"], copy)
    script = copy / program["script"]
    text = script.read_text()
    for old, new in program["edits"]:
        if text.count(old) != 1:
            sys.exit(f"observe_programs: {script.name} of {program['folder']} has {old.strip()!r} {text.count(old)} times: it is another version")
        text = text.replace(old, new)
    future = text.startswith("from __future__")
    head, rest = (text.split("\n", 1) if future else ("", text))
    script.write_text(head + ("\n" if future else "") + "import hand\n" + rest)
    (copy / "hand.py").write_text(HAND + FRAMEWORKS)
    if "prepare" in program:
        program["prepare"](copy)
    return copy


def run(program, copy, record):
    out = copy.parent / "hand.json"
    command = [sys.executable, program["script"], *program["arguments"]]
    if record is not None:
        shutil.rmtree(record, ignore_errors=True)
        command = [str(UNIDLE), "run", "-o", str(record), "--"] + command
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=dict(os.environ, HAND_OUT=str(out), HF_HUB_OFFLINE="1"))
    if done.returncode != 0:
        sys.exit(f"observe_programs: {program['folder']} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(out.read_text())


def recorded(record):
    database = sqlite3.connect(record / "record.db")
    steps, samples, ns, input_ns = database.execute("select count(*), sum(samples), sum(duration_ns), sum(coalesce(input_ns, 0)) from steps").fetchone()
    done = subprocess.run([str(UNIDLE), "diagnose", str(record), "--format", "json"], capture_output=True, text=True)
    diagnosis = json.loads(done.stdout)
    serious = [finding["id"] for finding in diagnosis["findings"] if finding["severity"] != "info"]
    return {"steps": steps, "samples": samples, "total_s": (ns or 0) * 1e-9, "input_s": (input_ns or 0) * 1e-9, "findings": serious,
            "verdict": diagnosis["verdict"]}


def measure(name, program, source, pairs):
    with tempfile.TemporaryDirectory() as folder:
        copy = make_copy(program, source, Path(folder))
        run(program, copy, None)  # fills caches
        added = []
        for pair in range(pairs):
            runs = {}
            for observed in ([False, True] if pair % 2 == 0 else [True, False]):
                runs[observed] = run(program, copy, Path(folder) / "record" if observed else None)
            added.append(runs[True]["total_s"] / runs[False]["total_s"] - 1)
            hand = runs[True]
            seen = recorded(Path(folder) / "record")
            print(f"{name} pair {pair + 1}/{pairs}: {added[-1]:+.1%}", file=sys.stderr)
    return {"name": name, "hand": hand, "seen": seen, "added": statistics.median(added), "added_all": added}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for name, program in PROGRAMS.items():
        if options.only and name not in options.only:
            continue
        if not (options.folder / program["folder"] / program["script"]).exists():
            print(f"{name}: not there", file=sys.stderr)
            continue
        rows.append(measure(name, program, options.folder, options.pairs))
    if options.json:
        print(json.dumps({"name": "observe_programs", "rows": rows}))
        return 0
    print("| program | steps, hand / record | input wait, hand / record | samples/s, hand / record | steps longer by | findings above info |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        hand, seen = row["hand"], row["seen"]
        rate, rate_seen = hand["samples"] / hand["total_s"], seen["samples"] / seen["total_s"]
        print(f"| {row['name']} | {hand['steps']} / {seen['steps']} | {hand['input_s'] / hand['total_s']:.1%} / {seen['input_s'] / seen['total_s']:.1%} "
              f"| {rate:.1f} / {rate_seen:.1f} ({rate_seen / rate - 1:+.1%}) | {row['added']:+.1%} ({min(row['added_all']):+.1%} to {max(row['added_all']):+.1%}) "
              f"| {', '.join(seen['findings']) or 'none'} ({seen['verdict']}) |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
