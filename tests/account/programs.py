"""Small training programs of many kinds, by name, from which the corpus of records is made."""

import multiprocessing
import os
import subprocess
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset


class Rows(Dataset):
    """Rows that take a moment to make."""

    def __init__(self, count=400, cost_s=0.0005):
        self.count = count
        self.cost_s = cost_s

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.cost_s)
        return torch.full((16,), float(index % 7)), torch.tensor([float(index % 3)])


class Stream(IterableDataset):
    def __iter__(self):
        rows = Rows(200)
        return (rows[i] for i in range(len(rows)))


def model_of(width=64):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 1))


def train(
    loader, epochs=1, accumulate=1, after_step=None, after_epoch=None, model=None, amp=False, optimizer=None
):
    model = model or model_of()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    for epoch in range(epochs):
        model.train()
        for number, (x, y) in enumerate(loader):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
                loss = nn.functional.mse_loss(model(x).float(), y) / accumulate
            loss.backward()
            if (number + 1) % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
                step += 1
                if after_step:
                    after_step(step, model, loss)
        if after_epoch:
            after_epoch(epoch, model)
    return model


def validate(_, model):
    model.eval()
    with torch.no_grad():
        for x, y in DataLoader(Rows(120), batch_size=8):
            nn.functional.mse_loss(model(x), y)


def save(_, model):
    torch.save(model.state_dict(), "checkpoint.pt")
    time.sleep(0.05)


def loop(**options):
    return lambda: train(DataLoader(Rows(), batch_size=8, **options))


def gan():
    generator, judge = model_of(), model_of(32)
    of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
    of_judge = torch.optim.Adam(judge.parameters(), lr=1e-3)
    for x, _ in DataLoader(Rows(), batch_size=8):
        of_judge.zero_grad()
        fake = generator(x).detach().expand(-1, 16)
        (judge(fake).mean() - judge(x).mean()).backward()
        of_judge.step()
        of_generator.zero_grad()
        (-judge(generator(x).expand(-1, 16)).mean()).backward()
        of_generator.step()


def no_loader():
    rows = TensorDataset(torch.randn(400, 16), torch.randn(400, 1))
    train([rows[i : i + 8] for i in range(0, 400, 8)], epochs=2)


def rank(number, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=number, world_size=2)
    model = nn.parallel.DistributedDataParallel(model_of())
    train(DataLoader(Rows(240, 0.0005 + 0.0005 * number), batch_size=8), model=model)
    torch.distributed.destroy_process_group()


def ranks():
    torch.multiprocessing.spawn(rank, (29_000 + os.getpid() % 5_000,), 2)


def one_after_the_other():
    for name in ("plain", "accumulation"):
        subprocess.run([sys.executable, __file__, name], check=True)


def side_by_side():
    """Two independent searches at once."""
    spawn = multiprocessing.get_context("spawn")
    both = [spawn.Process(target=train, args=(DataLoader(Rows(200), batch_size=8),)) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()


def resumed():
    train(DataLoader(Rows(160), batch_size=8), after_epoch=save)
    model = model_of()
    model.load_state_dict(torch.load("checkpoint.pt", weights_only=True))
    train(DataLoader(Rows(240), batch_size=8), model=model, after_epoch=save)


def best_model():
    """Saves within the validation."""

    def both(epoch, model):
        validate(epoch, model)
        save(epoch, model)
        validate(epoch, model)

    train(DataLoader(Rows(160), batch_size=8), epochs=3, after_epoch=both)


def gaps():
    train(
        DataLoader(Rows(200), batch_size=8),
        after_step=lambda step, *_: time.sleep(0.02 if step % 5 == 0 else 0),
    )


def fails():
    def at_thirty(step, *_):
        if step == 30:
            raise ValueError("a class that is not there")

    train(DataLoader(Rows(), batch_size=8), after_step=at_thirty)


def dies():
    train(DataLoader(Rows(), batch_size=8), after_step=lambda step, *_: step < 30 or os.kill(os.getpid(), 9))


def not_finite():
    train(
        DataLoader(Rows(200), batch_size=8),
        optimizer=None,
        after_step=lambda step, model, _: step == 15 and nn.init.constant_(model[0].weight, float("nan")),
    )


def lbfgs():
    model = model_of()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    for x, y in DataLoader(Rows(200), batch_size=8):

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)


def crowded():
    """Other processes use the machine meanwhile: they are not children of the run."""
    train(DataLoader(Rows(600), batch_size=8), epochs=2)


def only_prints():
    for step in range(1, 40):
        print(f"step {step}/40 loss {1 / step:.4f} samples/s 120", flush=True)
        time.sleep(0.02)


PROGRAMS = {
    "plain": loop(),
    "accumulation": lambda: train(DataLoader(Rows(), batch_size=4), accumulate=4),
    "gan": gan,
    "no-loader": no_loader,
    "ranks": ranks,
    "side-by-side": side_by_side,
    "one-after-the-other": one_after_the_other,
    "short-steps": lambda: train([(torch.randn(2, 16), torch.randn(2, 1))] * 3000),
    "workers": loop(num_workers=2),
    "workers-anew": lambda: train(DataLoader(Rows(160), batch_size=8, num_workers=1), epochs=3),
    "workers-stay": lambda: train(
        DataLoader(Rows(160), batch_size=8, num_workers=1, persistent_workers=True), epochs=3
    ),
    "stream": lambda: train(DataLoader(Stream(), batch_size=8), epochs=2),
    "validation": lambda: train(DataLoader(Rows(160), batch_size=8), epochs=3, after_epoch=validate),
    "checkpoints": lambda: train(DataLoader(Rows(160), batch_size=8), epochs=3, after_epoch=save),
    "best-model": best_model,
    "resumed": resumed,
    "gaps": gaps,
    "last-batch-smaller": lambda: train(DataLoader(Rows(123), batch_size=10), epochs=2),
    "waits": lambda: train(DataLoader(Rows(200), batch_size=8), after_step=lambda _, __, loss: loss.item()),
    "prints": lambda: train(
        DataLoader(Rows(200), batch_size=8),
        after_step=lambda step, _, loss: print(step, loss.item(), flush=True),
    ),
    "amp": lambda: train(DataLoader(Rows(200), batch_size=8), amp=True),
    "lbfgs": lbfgs,
    "not-finite": not_finite,
    "three-steps": lambda: train(DataLoader(Rows(24), batch_size=8)),
    "one-step": lambda: train(DataLoader(Rows(8), batch_size=8)),
    "slow-start": lambda: (time.sleep(1.5), loop()()),
    "fails": fails,
    "dies": dies,
    "crowded": crowded,
    "cut-off": lambda: train(DataLoader(Rows(4000), batch_size=8)),
    "timed-out": lambda: train(DataLoader(Rows(100_000), batch_size=8)),
    "only-prints": only_prints,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    PROGRAMS[sys.argv[1]]()
