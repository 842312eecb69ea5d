"""Some seconds of short steps, not all of which are observed in full; prints its own counts. See
test_short_steps.py."""

import json
import os
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

MODE, SECONDS = sys.argv[1], float(sys.argv[2])
LEAST_STEPS = 2500  # the first stretch of marked steps begins by step 820, even on a slow machine
torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(2000, 16), torch.randn(2000, 1)
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
other = nn.Linear(16, 1)
if MODE != "by-hand":
    opt, second = torch.optim.SGD(net.parameters(), lr=1e-3), torch.optim.SGD(other.parameters(), lr=1e-3)
done = {"steps": 0, "samples": 0, "validations": 0, "waits_s": [], "losses": []}
began = time.process_time()  # of the program alone: the number of steps is the same on a busy machine


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(x, y))


def going_on():
    return time.process_time() - began < SECONDS or done["steps"] < LEAST_STEPS


def learn(model, optimizer, a, b):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(a), b)
    loss.backward()
    optimizer.step()
    return loss


def count(samples, loss):
    done["steps"] += 1
    done["samples"] += samples
    if done["steps"] % 100 == 0:
        done["losses"].append(loss.item().hex())


def validate():
    net.eval()
    with torch.no_grad():
        for a, _b in DataLoader(TensorDataset(x, y), 500):
            net(a)
    net.train()
    done["validations"] += 1


def of_package():
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    import package  # noqa: F401

    from unidle import data

    return data.Loader(data.arrays(x.numpy().copy(), y.numpy().copy()), 32, workers=1)


def by_loader(loader, every):
    while going_on():
        iterator = iter(loader)
        while True:
            t = time.perf_counter()
            batch = next(iterator, None)
            waited = time.perf_counter() - t
            if batch is None:
                break
            done["waits_s"].append(waited)
            loss = learn(net, opt, *batch)
            count(len(batch[0]), loss)
            if done["steps"] % every == 0:
                validate()


if MODE == "map":
    by_loader(DataLoader(TensorDataset(x, y), 32), 350)
elif MODE == "package":
    by_loader(of_package(), 350)
elif MODE == "iterable":
    by_loader(DataLoader(Stream(), 32), 100_000)
elif MODE == "often":
    by_loader(DataLoader(TensorDataset(x, y), 32), 5)
elif MODE == "accumulated":
    loader = DataLoader(TensorDataset(x, y), 8, drop_last=True)
    while going_on():
        for index, (a, b) in enumerate(loader):
            loss = nn.functional.mse_loss(net(a), b) / 5
            loss.backward()
            if index % 5 == 4:
                opt.step()
                opt.zero_grad()
                count(40, loss)
elif MODE == "sliced":
    while going_on():
        i = done["steps"] % 60
        count(32, learn(net, opt, x[i * 32 : i * 32 + 32], y[i * 32 : i * 32 + 32]))
elif MODE == "tested":  # without eval() and no_grad()
    while going_on():
        i = done["steps"] % 60
        count(32, learn(net, opt, x[i * 32 : i * 32 + 32], y[i * 32 : i * 32 + 32]))

    class Model(nn.Module):
        def forward(self, x):
            return net(x)

    def test_the_model(model):
        # By CPU time, as training: a busy machine lengthens both. The sampler may look four times less often.
        end = time.process_time() + 3 * SECONDS
        while time.process_time() < end:
            model(x[:32])

    test_the_model(Model())
elif MODE == "two":
    loader = DataLoader(TensorDataset(x, y), 50)
    while going_on():
        for a, b in loader:
            learn(net, opt, a, b)
            count(50, learn(other, second, a, b))
elif MODE == "two-batches":  # each optimiser has its own batches, an epoch ends within a step
    loader = DataLoader(TensorDataset(x, y), 16)

    def endless():
        while True:
            yield from loader

    batches = endless()
    while going_on():
        learn(net, opt, *next(batches))
        count(32, learn(other, second, *next(batches)))
elif MODE == "scaled":
    scaler = torch.amp.GradScaler(
        "cpu", init_scale=2.0**120, growth_interval=40
    )  # overflows now and then: those steps are skipped
    while going_on():
        for a, b in DataLoader(TensorDataset(x, y), 50):
            opt.zero_grad()
            loss = nn.functional.mse_loss(net(a), b)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            count(50, loss)
elif MODE == "scheduled":
    while going_on():
        for a, b in DataLoader(TensorDataset(x, y), 50):
            if done["steps"] % 700 == 300:  # it keeps the optimiser's step as it is now
                scheduler = torch.optim.lr_scheduler.StepLR(opt, 1, 0.999)
            count(50, learn(net, opt, a, b))
elif MODE == "skips":  # now and then a batch is not used for training
    seen = 0
    while going_on():
        for a, b in DataLoader(TensorDataset(x, y), 50):
            seen += 1
            opt.zero_grad()
            loss = nn.functional.mse_loss(net(a), b)
            loss.backward()
            done["samples"] += 50
            if seen % 61 or not seen % 40:  # the last one of an epoch is
                opt.step()
                count(0, loss)
elif MODE == "clamped":  # not only the optimiser changes parameters
    while going_on():
        for a, b in DataLoader(TensorDataset(x, y), 50):
            count(50, learn(net, opt, a, b))
            if done["steps"] % 500 == 0:
                with torch.no_grad():
                    for p in net.parameters():
                        p.clamp_(-1, 1)
elif MODE == "by-hand":
    while going_on():
        for i in range(60):
            net.zero_grad()
            loss = nn.functional.mse_loss(net(x[i * 32 : i * 32 + 32]), y[i * 32 : i * 32 + 32])
            loss.backward()
            with torch.no_grad():
                for p in net.parameters():
                    p -= 1e-3 * p.grad
            count(32, loss)
with open(sys.argv[3], "w") as file:
    json.dump(done, file)
