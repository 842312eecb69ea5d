"""The public programs into which tools/faults.py injects faults: those that bench/observe_programs.py times,
and more of the same repositories. Each runs 10 to 30 s on two CPUs, in epochs if it has any."""

import random
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "peers"))

import public_programs  # noqa: E402

TIMED = public_programs.PROGRAMS


def digits(train, test=1000):
    return lambda copy: public_programs.digits(copy.parent / "data", train, test)


def results(train):
    def prepare(copy):
        digits(train)(copy)
        (copy / "results").mkdir(exist_ok=True)

    return prepare


def pictures(folder, count, classes=4, size=96):
    """Writes JPEGs named as those of the Oxford-IIIT Pet Dataset, and a folder for each class."""
    from PIL import Image

    draw = random.Random(0)
    folder.mkdir(parents=True)
    for number in range(count):
        label = f"class_{number % classes}"
        small = Image.frombytes("RGB", (12, 12), draw.randbytes(432))
        name = f"{label}_{number}.jpg"
        small.resize((size, size), Image.Resampling.BICUBIC).save(folder / name)
        for split in ("train", "validation"):
            (folder / split / label).mkdir(parents=True, exist_ok=True)
            (folder / split / label / name).hardlink_to(folder / name)


def papers(folder, count=2708, words=300):
    """Writes a graph in the format of Cora, and of its size: with fewer papers none is left to train on."""
    draw = random.Random(0)
    folder.mkdir()
    with open(folder / "cora.content", "w") as file:
        for paper in range(count):
            used = " ".join(str(int(draw.random() < 0.02)) for _ in range(words))
            file.write(f"{paper}\t{used}\ttopic_{draw.randrange(7)}\n".replace(" ", "\t"))
    pairs = (f"{draw.randrange(count)}\t{draw.randrange(count)}\n" for _ in range(2 * count))
    (folder / "cora.cites").write_text("".join(pairs))


PICTURES = {
    "script": "accelerate/examples/cv_example.py",
    "prepare": lambda copy: pictures(copy / "pictures", 600),
    "edits": [  # no weights are fetched
        ("pretrained=True", "pretrained=False"),
        ('"resnet50d"', '"resnet18"'),
        ('"batch_size": 64, "image_size": 224', '"batch_size": 16, "image_size": 64'),
    ],
    "arguments": ["--data_dir", "pictures", "--cpu"],
    "epochs": 3,
}

# `rows`: the data set is indexed, and one process makes its samples; `epochs`: it trains several epochs;
# `ranks`: torchrun starts so many processes.
PROGRAMS = {
    "mnist": {**TIMED["mnist"], "rows": True, "epochs": 3},
    "dcgan": TIMED["dcgan"],
    "word_language_model": TIMED["word_language_model, AdamW"],
    "nanoGPT": TIMED["nanoGPT"],
    "Lightning": TIMED["Lightning"],
    "Hugging Face Trainer": TIMED["Hugging Face Trainer"],
    "vae": {
        "script": "examples/vae/main.py",
        "prepare": results(16000),
        "arguments": ["--epochs", "4", "--no-accel"],
        "rows": True,
        "epochs": 4,
    },
    "mnist_rnn": {
        "script": "examples/mnist_rnn/main.py",
        "prepare": digits(8000),
        "arguments": ["--epochs", "3"],
        "rows": True,
        "epochs": 3,
    },
    "siamese_network": {
        "script": "examples/siamese_network/main.py",
        "prepare": digits(2500, 200),
        "arguments": ["--epochs", "2"],
        "rows": True,
        "epochs": 2,
    },
    "graph attention": {
        "script": "examples/gat/main.py",
        "prepare": lambda copy: papers(copy / "cora"),
        "arguments": ["--epochs", "25", "--no-accel"],
    },
    "diffusion": {
        "script": "tiny-diffusion/ddpm.py",
        "arguments": ["--num_epochs", "6", "--save_images_step", "1000"],
        "epochs": 6,
    },
    "DQN": {
        "script": "cleanrl/cleanrl/dqn.py",
        "with": ["cleanrl/cleanrl_utils"],
        "arguments": ["--total-timesteps", "40000", "--no-cuda"],
    },
    "ignite": {
        "script": "ignite/examples/mnist/mnist.py",
        "prepare": lambda copy: public_programs.digits(copy, 12000, 1000),
        "arguments": ["--epochs", "3"],
        "rows": True,
        "epochs": 3,
    },
    "accelerate": PICTURES,
    "accelerate, two ranks": {**PICTURES, "ranks": 2},
    "timm": {
        "script": "pytorch-image-models/train.py",
        "prepare": lambda copy: pictures(copy / "pictures", 800),
        "arguments": [
            "pictures",
            "--model=resnet10t",
            "--num-classes=4",
            "--img-size=64",
            "--batch-size=16",
            "--workers=1",
            "--epochs=2",
            "--warmup-epochs=0",
            "--cooldown-epochs=0",
            "--device=cpu",
            "--no-prefetcher",
            "--output=out",
        ],
        "epochs": 2,
    },
    "minGPT": {
        "script": "minGPT/projects/adder/adder.py",
        "with": ["minGPT/mingpt"],
        "arguments": ["--trainer.max_iters=400", "--trainer.num_workers=1", "--model.model_type=gpt-nano"],
        "rows": True,
    },
    "DLRM": {
        "script": "dlrm/dlrm_s_pytorch.py",
        "arguments": [
            "--arch-embedding-size=10000-10000-1000",
            "--arch-sparse-feature-size=16",
            "--arch-mlp-bot=13-64-16",
            "--arch-mlp-top=128-64-1",
            "--data-generation=random",
            "--mini-batch-size=128",
            "--data-size=100000",
            "--print-freq=100",
        ],
    },
}


def launcher(program):
    """The words that start a Python script of the program."""
    ranks = PROGRAMS[program].get("ranks")
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return [sys.executable, *(torchrun if ranks else [])]


def copy_of(program, source, folder):
    details = PROGRAMS[program]
    copy = public_programs.copy_of(details, source, folder, by_hand=False)
    for package in details.get("with", []):
        shutil.copytree(source / package, copy / Path(package).name)
    return copy
