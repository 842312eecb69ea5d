"""Programs that do more than train. The word says what: `metrics` of each batch, `rollout` plays an
environment with the policy, `resume` reads its loader forward, `slower` reads a growing file, `logs` writes
many lines, `sparse` has SparseAdam, `generate` writes text with the model that was trained, `pairs` draws
pairs and calls a method of its model, `direct` calls its forward(), `closure` computes metrics in the closure
of the optimiser, `predict` evaluates by a method of its model, `average` keeps an average of the weights."""

import logging
import math
import os
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)  # two would wait for each other on a busy machine
torch.manual_seed(0)


def network(inputs=64, outputs=1):
    return torch.nn.Sequential(torch.nn.Linear(inputs, 64), torch.nn.Tanh(), torch.nn.Linear(64, outputs))


def spread(labels, scores, times=60):
    """A metric with its interval."""
    found = []
    for i in range(times):
        order = np.argsort(scores[(np.arange(len(scores)) * (i + 1)) % len(scores)])
        found.append(float(np.sum(np.cumsum(1 - labels[order]) * labels[order])))
    return np.std(found)


def metrics(steps=3000):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(12800, 64), (torch.rand(12800, 1) > 0.5).float()
    for step in range(steps):
        k = step % 100 * 128
        out = model(x[k : k + 128])
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out, y[k : k + 128])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        spread(y[k : k + 128, 0].numpy(), out[:, 0].detach().numpy())


def closure(seconds=6.0):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(128, 64), (torch.rand(128, 1) > 0.5).float()

    def gradients():
        optimizer.zero_grad()
        out = model(x)
        spread(y[:, 0].numpy(), out[:, 0].detach().numpy(), times=240)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out, y)
        loss.backward()
        return loss.item()

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        optimizer.step(gradients)


@torch.no_grad()
def update(kept, model):
    for name, value in kept.state_dict().items():
        value.copy_(0.99 * value + 0.01 * model.state_dict()[name])


def average(seconds=6.0):
    model, kept = (torch.nn.Sequential(*(network(8, 8) for _ in range(32))) for _ in range(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(64, 8), torch.randn(64, 8)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update(kept, model)


def play(state, action):
    x, v, angle, turn = state
    for _ in range(60):
        v += 0.01 * math.cos(angle)
        x += v * 0.01
        turn += (action - 0.5) * math.sin(x)
        angle += turn * 0.001
    return [x % 5, v % 5, angle % 6, turn % 5]


def rollout(iterations=60):
    policy = network(4, 2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    state = [0.1, 0.0, 0.0, 0.0]
    for _ in range(iterations):
        seen, done = [], []
        for _ in range(256):
            with torch.no_grad():
                action = torch.distributions.Categorical(logits=policy(torch.tensor([state]))).sample()
            seen.append(state)
            done.append(action[0])
            state = play(state, float(action))
        x, y = torch.tensor(seen), torch.stack(done)
        for _ in range(4):
            for k in range(0, 256, 64):
                loss = torch.nn.functional.cross_entropy(policy(x[k : k + 64]), y[k : k + 64])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


class Rows(Dataset):
    def __len__(self):
        return 40000

    def __getitem__(self, i):
        return torch.full((64,), float(sum(range(i % 7 + 300)))), torch.zeros(1)


def resume(skipped=300, steps=100):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for i, (x, y) in enumerate(DataLoader(Rows(), batch_size=64)):
        if i < skipped:
            continue
        if i == skipped + steps:
            break
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def slower(steps=500):
    """Each step waits as long as a file on a slow disk takes that grows by one line with each step."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = torch.randn(64, 64), torch.randn(64, 1)
    for step in range(steps):
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(4e-5 * step)


def logs(steps=400):
    """Writes 200 lines of log in each step."""
    logger = logging.getLogger("training")
    logger.addHandler(logging.FileHandler(os.devnull))
    logger.setLevel(logging.INFO)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = torch.randn(64, 64), torch.randn(64, 1)
    for step in range(steps):
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for part in range(200):
            logger.info("step %d, part %d", step, part)


def sparse(steps=300):
    table = torch.nn.Embedding(20000, 64, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters(), lr=1e-3)
    for _ in range(steps):
        loss = table(torch.randint(20000, (512,))).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Ranking(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(2000, 64))

    def loss(self, pairs):
        found = self.table
        for _ in range(8):
            found = (found @ found.T[:, :64]).tanh()
        return (found[pairs[:, 0]] - found[pairs[:, 1]]).pow(2).mean()


def draw(count):
    first = torch.tensor([7 * i * sum(range(i % 9 + 40)) % 2000 for i in range(count)])
    return torch.stack([first, torch.arange(count) % 2000], dim=1)


def pairs(seconds=20.0):
    """By time: on a fast machine a number of steps leaves too few stack samples. Few of them are in draw(),
    which keeps the sampling thread from running."""
    model = Ranking()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        loss = model.loss(draw(6000))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Direct(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = network()

    def forward(self, x):
        return self.layers(x)

    def predict(self, x):
        return self.layers(x)[:, 0]


def predict(epochs=4, steps=40, seconds=0.5):
    model = Direct()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(epochs):
        model.train()
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(512, 64)).square().mean().backward()
            optimizer.step()
        model.eval()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            model.predict(torch.randn(64, 64)).argsort()


def direct(steps=60):
    model = Direct()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        model.forward(torch.randn(64, 64)).square().mean().backward()
        optimizer.step()


def generate(steps=150, seconds=3.0):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(steps):
        x, y = torch.randn(4096, 64), torch.randn(4096, 1)
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    until, text, x = time.monotonic() + seconds, "", torch.zeros(1, 64)
    while time.monotonic() < until:
        x = x.roll(1, 1) + model(x)
        text += chr(97 + int(x.sum()) % 26)
        sum(i * i for i in range(3000))  # the choice of a letter


globals()[sys.argv[1]]()
