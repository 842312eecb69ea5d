"""Programs for requests to the shim (settings, a profiler's window, a trial's longest batch), and for calls
that entries.py does not make; see test_guard.py. Each prints results that must not change."""

import hashlib
import os
import random
import sys
import tempfile
import threading
import weakref

if os.environ.get("UNIDLE_ASSUME_DEVICE"):
    import programs.claimed  # noqa: F401 - before torch

import torch
from programs.entries import Rows, learn, model, training, x, y
from torch import nn
from torch.utils.data import DataLoader, Dataset


def compiled():
    net = model()
    faster = torch.compile(net, backend="eager")
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for number in range(4):
        print(learn(faster, optimizer, x[number::4], y[number::4]).item().hex())
    print(torch.export.export(net, (x[:2],)).module()(x[:2])[0].item().hex())


def uncaught():
    net = model()
    learn(net, torch.optim.SGD(net.parameters(), lr=1e-3), x, y)
    try:
        net(torch.zeros(3))
    except RuntimeError:
        sys.excepthook(*sys.exc_info())
    thread = threading.Thread(target=net, args=(torch.zeros(3),))
    thread.start()
    thread.join()

    class Fails:
        def __repr__(self):
            return "Fails()"

        def __call__(self, _):
            raise ValueError("freed")

    freed = model()
    weak = weakref.ref(freed, Fails())
    del freed
    print(weak() is None)


def latecomers():
    """Optimisers and schedulers made while steps are only marked."""
    net, other = model(), model()
    first, second = (torch.optim.SGD(one.parameters(), lr=1e-3) for one in (net, other))
    for number in range(600):
        loss = learn(net, first, x[:8], y[:8])
        if number > 200 and number % 37 == 0:
            second.step()
        if number > 400 and number % 41 == 0:
            torch.optim.lr_scheduler.StepLR(first, 1000)
    print(loss.item().hex())


def freed():
    """Nothing of ours runs while an object of the program's is freed: exceptions that a signal handler raises
    there are lost."""
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    loader = DataLoader(Rows(), 16)
    iterator = iter(loader)
    for a, b in iterator:
        learn(net, optimizer, a, b)
    for one in (net, optimizer, loader, loader.dataset, iterator, a, b):
        print([each.__callback__ for each in weakref.getweakrefs(one) if each.__callback__ is not None])


def profiled():
    training()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        training()
    print(any(event.key == "aten::addmm" for event in profiler.key_averages()))


def read(index):
    """As costly as a small picture."""
    data = hashlib.pbkdf2_hmac("sha256", b"%d" % index, b"", 2000, 64)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def place(index):
    return index % 16


class Pictures(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return read(index)[:4] / 256.0, torch.ones(1) * index


class Crops(Pictures):
    """Different each time; only `read` repeats."""

    def __getitem__(self, index):
        begin = random.randrange(8) + place(index)
        return read(index)[begin : begin + 4] / 256.0, torch.ones(1) * index


class Table(Dataset):
    """Supports requests for many rows at once."""

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return x[index], y[index]


def samples(data, **options):
    random.seed(0)
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for epoch in range(4):
        for a, b in DataLoader(data, 8, **options):
            print(epoch, a.sum().item().hex(), learn(net, optimizer, a, b).item().hex())


def pictures():
    samples(Pictures())


def pictures_of_workers():
    samples(Pictures(), num_workers=1, multiprocessing_context="fork")


def crops():
    samples(Crops())


def table():
    samples(Table())


def fused():
    """Fused or not, with the same results to three places; its groups stay the program's own."""
    net = model()
    groups = [{"params": net.parameters(), "lr": 1e-3}]
    optimizer = torch.optim.Adam(groups)
    for number in range(4):
        print("%.3f" % learn(net, optimizer, x[number::4], y[number::4]).item())
    print(groups[0] is optimizer.param_groups[0], len(groups[0]["params"]))
    print(*optimizer.state_dict())
    try:
        torch.optim.Adam(one for one in [net, net])
    except TypeError as error:
        print(error)


def judged():
    """Validation that draws a seed for its loader each time."""

    def judge(net):  # made here, where the garbage collector sees it: earlier objects are frozen
        net.eval()
        with torch.no_grad():
            for a, b in DataLoader(Rows(), 16):
                net(a)
        net.train()

    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for epoch in range(6):
        for a, b in DataLoader(Rows(), 16, shuffle=True):
            loss = learn(net, optimizer, a, b)
        judge(net)
        print(loss.item().hex())


class Padded(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        mask = (torch.arange(30) < 2 + index % 5).long()
        return {"input_ids": mask * (1 + index % 8), "attention_mask": mask, "y": index % 2}


def padded():
    torch.manual_seed(5)
    net = nn.Embedding(9, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-1)
    for _ in range(2):
        for batch in DataLoader(Padded(), 4):
            out = (net(batch["input_ids"]) * batch["attention_mask"][..., None]).sum(1)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(out, batch["y"])
            loss.backward()
            optimizer.step()
        print("%.4f" % loss.item())


def of_a_trial():
    """Starts a tracker online."""
    modules = tempfile.mkdtemp()
    with open(os.path.join(modules, "wandb.py"), "w") as out:
        out.write("def init(project=None, mode='online'): return mode\n")
    sys.path.insert(0, modules)
    import wandb

    print(wandb.init(), wandb.init("p", "online"), wandb.init(mode="disabled"))


class Texts(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.ones(index * 7 % 40)


def longest():
    for epoch in range(2):
        for batch in DataLoader(Texts(), 4, collate_fn=list):
            print([len(one) for one in batch])


def on_a_device():
    from programs.claimed import Claimed

    net = model().to("cpu")
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for a, b in DataLoader(Rows(), 16):
        loss = learn(net, optimizer, a.to("cpu"), b.to("cpu", non_blocking=True)).as_subclass(Claimed)
        print(float(loss).hex(), loss.to("cpu").tolist())
    print(a.to("meta").device, torch.cuda.is_initialized())


def half():
    """Holds in any precision: it learns, and no step whose gradients overflowed is taken."""
    halved(*halves())


def half_in_a_child():
    """Trains with the model and the optimiser of its parent process."""
    made = halves()
    sys.stdout.flush()
    if os.fork() == 0:
        halved(*made)
        return
    os.wait()


def halves():
    net = model()
    return net, torch.optim.SGD(net.parameters(), lr=0.05)


def halved(net, optimizer):
    losses = []
    for number in range(40):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y) * 4.0
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    finite = all(bool(torch.isfinite(parameter).all()) for parameter in net.parameters())
    print(finite, losses[-1] < 0.7 * losses[0], net(x).dtype)
