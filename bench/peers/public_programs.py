"""Public training programs as bench/observe_programs.py and tools/faults.py run them: their paths, data and
arguments, and where timing calls are inserted. Each is a copy from its repository with only these edits."""

import json
import pickle
import random
import re
import shutil
import struct
from pathlib import Path

HAND = Path(__file__).with_name("hand.py")


def copy_of(program, source, folder, by_hand):
    """Copies the program's folder from the clones in `source`, makes its data, and returns the copy's path.
    `by_hand`: with timing calls."""
    script = source / program["script"]
    copy = folder / "program"
    shutil.copytree(script.parent, copy)
    text = script.read_text()
    for old, new in program.get("edits", []):
        if text.count(old) != 1:
            raise SystemExit(f"{script} has {old.strip()!r} {text.count(old)} times: it is another version")
        if by_hand or "hand." not in new:
            text = text.replace(old, new)
    if by_hand:
        text = re.sub(
            r"^(?=(import|from) (?!__future__))", "import hand\n", text, count=1, flags=re.MULTILINE
        )
        shutil.copy(HAND, copy)
    (copy / script.name).write_text(text)
    if "prepare" in program:
        program["prepare"](copy)
    return copy


def digits(folder, train, test):
    """Writes pictures in the format of MNIST."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    draw = random.Random(0)
    for name, count in (("train", train), ("t10k", test)):
        (raw / f"{name}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 2051, count, 28, 28) + draw.randbytes(count * 784)
        )
        labels = bytes(draw.randrange(10) for _ in range(count))
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels)


def prose(path, words):
    draw = random.Random(0)
    known = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(2, 8))) for _ in range(500)]
    path.write_text("".join(" ".join(draw.choices(known, k=12)) + "\n" for _ in range(words // 12)))


def texts(copy):
    (copy / "text").mkdir()
    for name, words in (("train", 60000), ("valid", 4000), ("test", 4000)):
        prose(copy / "text" / f"{name}.txt", words)


def tokens(copy):
    folder = copy / "data" / "made"
    folder.mkdir(parents=True)
    (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 50}))
    draw = random.Random(0)
    for name in ("train", "val"):
        (folder / f"{name}.bin").write_bytes(
            struct.pack("<200000H", *(draw.randrange(50) for _ in range(200000)))
        )


def instructions(copy):
    """Writes instructions, and a tiny model with a tokenizer for them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    prose(copy / "text.txt", 20000)
    lines = (copy / "text.txt").read_text().splitlines()
    pairs = [
        {"instruction": one, "input": "", "output": other} for one, other in zip(lines[::2], lines[1::2])
    ]
    (copy / "data.json").write_text(json.dumps(pairs))
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"unk_token": "<unk>", "eos_token": "</s>", "bos_token": "<s>", "pad_token": "[PAD]"}
    tokenizer.train(
        [str(copy / "text.txt")], trainers.BpeTrainer(vocab_size=800, special_tokens=list(special.values()))
    )
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(copy / "tiny")
    config = GPT2Config(
        vocab_size=len(tokenizer.get_vocab()), n_embd=64, n_layer=2, n_head=4, n_positions=512
    )
    GPT2LMHeadModel(config).save_pretrained(copy / "tiny")


def _after(line, more):
    return line, line + more


_MNIST = {
    "script": "examples/mnist/main.py",
    "prepare": lambda copy: digits(copy.parent / "data", 6000, 1000),
    "arguments": ["--epochs", "3"],
    "edits": [
        ("in enumerate(train_loader):", "in enumerate(hand.Timed(train_loader)):"),
        ("        optimizer.step()\n", "        optimizer.step(); hand.step(len(data))\n"),
    ],
}
_WORDS = {
    "script": "examples/word_language_model/main.py",
    "prepare": texts,
    "arguments": ["--data", "text", "--epochs", "2", "--emsize", "96", "--nhid", "96", "--batch_size", "16"],
    "edits": [
        (
            "    model.train()\n    total_loss = 0.\n",
            "    model.train()\n    hand.mark()\n    total_loss = 0.\n",
        ),
        ("data, targets = get_batch(train_data, i)", "data, targets = hand.fetch(get_batch, train_data, i)"),
        (
            "        total_loss += loss.item()\n",
            "        hand.step(data.size(1))\n        total_loss += loss.item()\n",
        ),
    ],
}

# `script` is a path in the given folder; the script's folder is copied.
PROGRAMS = {
    "mnist": _MNIST,
    "mnist, a worker": {
        **_MNIST,
        "edits": _MNIST["edits"]
        + [
            (
                "train_kwargs = {'batch_size': args.batch_size}",
                "train_kwargs = {'batch_size': args.batch_size, 'num_workers': 1}",
            )
        ],
    },
    "dcgan": {
        "script": "examples/dcgan/main.py",
        "arguments": [
            "--dataset",
            "fake",
            "--batchSize",
            "8",
            "--ngf",
            "16",
            "--ndf",
            "16",
            "--niter",
            "1",
            "--workers",
            "1",
            "--outf",
            ".",
        ],
        "edits": [
            ("in enumerate(dataloader, 0):", "in enumerate(hand.Timed(dataloader), 0):"),
            ("        optimizerG.step()\n", "        optimizerG.step(); hand.step(real_cpu.size(0))\n"),
        ],
    },
    "word_language_model": _WORDS,
    "word_language_model, AdamW": {
        **_WORDS,
        "arguments": _WORDS["arguments"] + ["--use-optimizer", "--lr", "0.001"],
    },
    "nanoGPT": {
        "script": "nanoGPT/train.py",
        "prepare": tokens,
        "arguments": [
            "--dataset=made",
            "--device=cpu",
            "--compile=False",
            "--dtype=float32",
            "--eval_iters=5",
            "--eval_interval=150",
            "--log_interval=10",
            "--block_size=64",
            "--batch_size=12",
            "--gradient_accumulation_steps=2",
            "--n_layer=3",
            "--n_head=4",
            "--n_embd=96",
            "--max_iters=300",
        ],
        "edits": [
            (
                "        X, Y = get_batch('train')\n        # backward",
                "        X, Y = hand.fetch(get_batch, 'train')\n        # backward",
            ),
            (
                "    if iter_num == 0 and eval_only:\n",
                "    if iter_num % eval_interval == 0:\n        hand.mark()\n"
                "    if iter_num == 0 and eval_only:\n",
            ),
            (
                "    scaler.update()\n",
                "    scaler.update(); hand.step(batch_size * gradient_accumulation_steps)\n",
            ),
        ],
    },
    "Lightning": {
        "script": "pytorch-lightning/examples/pytorch/basics/backbone_image_classifier.py",
        "prepare": lambda copy: digits(copy / "Datasets", 60000, 1000),
        "arguments": [
            "--trainer.max_epochs=1",
            "--trainer.accelerator=cpu",
            "--trainer.limit_train_batches=800",
            "--trainer.limit_val_batches=20",
            "--trainer.limit_test_batches=5",
            "--trainer.limit_predict_batches=5",
            "--trainer.enable_progress_bar=false",
        ],
        "edits": [  # its own MNIST contacts another machine first
            (
                "from lightning.pytorch.demos.mnist_datamodule import MNIST\n",
                "from torchvision.datasets import MNIST\n",
            ),
            ('path.join(path.dirname(__file__), "..", "..", "Datasets")', '"Datasets"'),
            (
                "return DataLoader(self.mnist_train, batch_size=self.batch_size)",
                "return hand.Timed(DataLoader(self.mnist_train, batch_size=self.batch_size))",
            ),
            (
                "    def validation_step(",
                "    def on_train_batch_end(self, outputs, batch, batch_idx):\n"
                "        hand.step(len(batch[0]))\n\n"
                "    def validation_step(",
            ),
        ],
    },
    "Hugging Face Trainer": {
        "script": "stanford_alpaca/train.py",
        "prepare": instructions,
        "arguments": [
            "--model_name_or_path",
            "tiny",
            "--data_path",
            "data.json",
            "--output_dir",
            "out",
            "--use_cpu",
            "true",
            "--max_steps",
            "300",
            "--per_device_train_batch_size",
            "4",
            "--report_to",
            "none",
            "--save_strategy",
            "no",
            "--disable_tqdm",
            "true",
        ],
        # `utils` imports a module of another service; newer versions of Trainer renamed the tokenizer
        # argument.
        "edits": [
            ("import utils\n", "import json\n"),
            ("utils.jload(data_path)", "json.load(open(data_path))"),
            (
                "trainer = Trainer(model=model, tokenizer=tokenizer,",
                "trainer = Trainer(model=model, processing_class=tokenizer,",
            ),
            _after("args=training_args, **data_module)\n", "    hand.follow(trainer)\n"),
        ],
    },
}
