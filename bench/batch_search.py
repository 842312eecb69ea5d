"""Compares the speed at the batch size found by `unidle optimize` with the sizes found by other tools, for
the same model and loader.

    bench/batch_search.py [--rounds 3] [--seconds 3] [--memory-mib 1536] [--json]

The program decodes and crops small pictures in one loader process and trains a convolutional net on one
thread. Each tool starts from its most favourable size and may try a dozen sizes, all under the same memory
limit (RLIMIT_DATA):

  unidle                          `unidle optimize --allow semantic` from a batch of 4, which measures
                                  samples/s including the loader
  Lightning, power and binsearch  `Tuner.scale_batch_size` from 4: the largest size that fits, or the whole
                                  data set
  accelerate                      `find_executable_batch_size` from 512 downwards: the first size that fits

The program then runs with each size in alternation, including the loader, and the rates after the first
quarter of the time are compared. Peers that cannot be imported (lightning, accelerate) are reported as
absent.

"""

import argparse
import importlib.util
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("UNIDLE_BIN", ROOT / "build" / "bin"))
START, MOST, SAMPLES = 4, 512, 4096
LONGEST_S = 40  # time limit of another tool

TRAINING = """
import io
import numpy as np, torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)

class Pictures(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.files = []
        for _ in range(64):
            target = io.BytesIO()
            rough = Image.fromarray(rng.integers(0, 255, (9, 9, 3), dtype=np.uint8))
            smooth = rough.resize((72, 72), Image.BICUBIC)
            smooth.save(target, "JPEG", quality=90)
            self.files.append(target.getvalue())
    def __len__(self):
        return SAMPLES
    def __getitem__(self, i):
        picture = np.asarray(Image.open(io.BytesIO(self.files[i % 64])), dtype=np.float32) / 255
        y, x = np.random.default_rng(i).integers(0, 8, 2)
        part = torch.from_numpy(picture[y:y + 64, x:x + 64].copy())
        return part.permute(2, 0, 1), torch.tensor(float(picture.mean()))

def net():
    torch.manual_seed(0)
    layers, wide = [], 3
    for out in (16, 16, 32):
        layers += [nn.Conv2d(wide, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]
        wide = out
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, 1)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)

def loader(batch):
    return DataLoader(Pictures(), batch_size=batch, shuffle=True, drop_last=True, num_workers=1,
                      persistent_workers=True)

def optimizer_of(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

def loss_of(model, batch):
    x, y = batch
    return nn.functional.mse_loss(model(x.contiguous(memory_format=torch.channels_last)).squeeze(1), y)

def step(model, optimizer, batch):
    loss = loss_of(model, batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""".replace("SAMPLES", str(SAMPLES))

TRAIN = """
import argparse, time
import training
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, required=True)
parser.add_argument("--seconds", type=float, default=0)
args = parser.parse_args()
model = training.net()
optimizer = training.optimizer_of(model)
data = training.loader(args.batch_size)
begin, warm, counted = time.monotonic(), None, 0
for epoch in range(1000):
    for batch in data:
        training.step(model, optimizer, batch)
        now = time.monotonic()
        if warm is not None:
            counted += len(batch[0])
        elif now - begin > args.seconds / 4:
            warm = now
        if args.seconds and now - begin > args.seconds and counted:
            print(counted / (now - warm))
            raise SystemExit
"""

FINDERS = {
    "lightning power": ("lightning", "LIGHTNING", "power"),
    "lightning binsearch": ("lightning", "LIGHTNING", "binsearch"),
    "accelerate": ("accelerate", "ACCELERATE", ""),
}

LIGHTNING = """
import logging, sys, warnings
warnings.filterwarnings("ignore")
import lightning as L
from lightning.pytorch.tuner import Tuner
import training
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.batch_size = training.net(), START
    def train_dataloader(self):
        return training.loader(self.batch_size)
    def training_step(self, batch, index):
        return training.loss_of(self.net, batch)
    def configure_optimizers(self):
        return training.optimizer_of(self.net)
trainer = L.Trainer(accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
options = dict(mode=sys.argv[1], steps_per_trial=2, init_val=START, max_trials=12)
print(Tuner(trainer).scale_batch_size(Module(), **options))
""".replace("START", str(START))

ACCELERATE = """
import itertools
from accelerate.utils import find_executable_batch_size
import training
@find_executable_batch_size(starting_batch_size=MOST)
def find(batch_size):
    model = training.net()
    optimizer = training.optimizer_of(model)
    data = training.loader(batch_size)
    for batch in itertools.islice(itertools.chain(data, data), 2):
        training.step(model, optimizer, batch)
    return batch_size
print(find())
""".replace("MOST", str(MOST))


class Limited:
    """Runs commands in `folder`, each with a memory limit."""

    def __init__(self, folder, mebibytes):
        self.folder, self.bytes = folder, mebibytes << 20

    def __call__(self, *command, timeout=None):
        limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (self.bytes, self.bytes))
        done = subprocess.run(
            list(map(str, command)),
            cwd=self.folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            preexec_fn=limit,
            timeout=timeout,
        )
        if done.returncode != 0:
            raise RuntimeError(
                "exit code %d, %s"
                % (done.returncode, (done.stderr.strip().splitlines() or ["without a word"])[-1])
            )
        return done.stdout

    def rate(self, size, seconds):
        return float(self(sys.executable, "train.py", "--batch-size", size, "--seconds", seconds))


def found_by_unidle(run, budget):
    document = json.loads(
        run(
            BIN / "unidle",
            "optimize",
            "--only",
            "batch.size",
            "--allow",
            "semantic",
            "--budget",
            "%ds" % budget,
            "--format",
            "json",
            "--",
            sys.executable,
            "train.py",
            "--batch-size",
            START,
        )
    )
    tried = [trial["knobs"]["batch.size"] for trial in document["trials"] if trial["stage"] == "batch"]
    return int(document["best"].get("batch.size", START)), {
        "tried": tried,
        "conclusion": document["conclusion"],
    }


def found_by_peers(run):
    sizes, absent = {}, []
    for name, (module, script, mode) in FINDERS.items():
        if importlib.util.find_spec(module) is None:
            absent.append("%s is not installed" % name)
            continue
        try:
            sizes[name] = int(
                run(
                    sys.executable,
                    script.lower() + "_finder.py",
                    *([mode] if mode else []),
                    timeout=LONGEST_S,
                ).split()[-1]
            )
        except subprocess.TimeoutExpired:
            absent.append("%s had no answer after %d s" % (name, LONGEST_S))
        except RuntimeError as failure:
            absent.append("%s failed: %s" % (name, failure))
    return sizes, absent


def measure(arguments):
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["UNIDLE_HOME"] = str(Path(scratch) / "home")
        folder = Path(scratch) / "program"
        folder.mkdir()
        for name, text in {
            "training.py": TRAINING,
            "train.py": TRAIN,
            "lightning_finder.py": LIGHTNING,
            "accelerate_finder.py": ACCELERATE,
        }.items():
            (folder / name).write_text(text)
        run = Limited(folder, arguments.memory_mib)
        begin = time.monotonic()
        ours, how = found_by_unidle(run, arguments.budget)
        seconds = time.monotonic() - begin
        peers, absent = found_by_peers(run)
        sizes = {"unidle": ours, **peers}
        rates = {name: [] for name in sizes}
        for number in range(arguments.rounds):
            names = list(sizes) if number % 2 == 0 else list(sizes)[::-1]
            for name in names:
                rates[name].append(run.rate(sizes[name], arguments.seconds))
    ratios = {name: [ours / peer for ours, peer in zip(rates["unidle"], rates[name])] for name in peers}
    return {
        "sizes": sizes,
        "rates": {name: statistics.median(found) for name, found in rates.items()},
        "absent": absent,
        "search_s": seconds,
        "ratios": {
            name: {"median": statistics.median(each), "low": min(each), "high": max(each)}
            for name, each in ratios.items()
        },
        **how,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of a run")
    parser.add_argument("--budget", type=int, default=100, help="seconds of the search")
    parser.add_argument("--memory-mib", type=int, default=1536)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments)
    if arguments.json:
        print(
            json.dumps(
                {
                    "name": "batch_search",
                    "unit": "samples/s",
                    "ours": found["rates"]["unidle"],
                    "peers": {name: rate for name, rate in found["rates"].items() if name != "unidle"},
                    "ratio": min((each["median"] for each in found["ratios"].values()), default=None),
                    "found": found,
                    "machine": "%s, %d CPUs" % (platform.processor() or platform.machine(), os.cpu_count()),
                }
            )
        )
        return
    print(
        "unidle tried %s in %.0f s: %s" % (" ".join(found["tried"]), found["search_s"], found["conclusion"])
    )
    for name, size in found["sizes"].items():
        ratio = found["ratios"].get(name)
        print(
            "%-20s batch %5d  %6.0f samples/s%s"
            % (
                name,
                size,
                found["rates"][name],
                ""
                if ratio is None
                else "  ours %.2f times (%.2f to %.2f)" % (ratio["median"], ratio["low"], ratio["high"]),
            )
        )
    for name in found["absent"]:
        print(name)


if __name__ == "__main__":
    main()
