"""The public programs into which tools/faults.py injects faults: those that bench/observe_programs.py times,
and more of the same repositories. Each runs 10 to 30 s on two CPUs, in epochs if it has any."""

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


# `rows`: the data set is indexed, and one process makes its samples; `epochs`: it trains several epochs.
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
}


def copy_of(program, source, folder):
    return public_programs.copy_of(PROGRAMS[program], source, folder, by_hand=False)
