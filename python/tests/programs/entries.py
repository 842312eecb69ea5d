"""Small programs that, together with those of asked.py, reach every entry of the shim; see test_guard.py.
Each prints results that must not change."""

import argparse
import gc
import logging
import os
import sys
import threading
import traceback

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

x, y = torch.arange(64 * 4).reshape(64, 4) / 256.0, torch.arange(64).reshape(64, 1) / 64.0


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return x[index], y[index]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(x, y))


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def learn(net, optimizer, a, b):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(a), b)
    loss.backward()
    optimizer.step()
    return loss


def evaluate(net):
    net.eval()
    with torch.no_grad():
        total = sum(((net(a) - b) ** 2).sum() for a, b in DataLoader(TensorDataset(x, y), 32))
    net.train()
    print("validation", total.item().hex())


def training():
    torch.set_num_threads(torch.get_num_threads())
    torch.autograd.set_detect_anomaly(False)
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for epoch in range(3):
        for number, (a, b) in enumerate(DataLoader(Rows(), 16)):
            loss = learn(net, optimizer, a, b)
            print(
                epoch,
                number,
                loss.item().hex(),
                float(loss).hex(),
                bool(loss > 0),
                a.tolist()[0][0],
                len(b.numpy()),
            )
        scheduler.step()
        evaluate(net)
        gc.collect()
        torch.save(net.state_dict(), os.devnull)
        logging.getLogger("training").warning("epoch %d", epoch)
    torch.cuda.synchronize() if torch.cuda.is_available() else None


def short_steps(count=1000, **options):
    """Long enough that steps are only marked. Includes a second optimiser, a checkpoint, a scheduler."""
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    loader, done = DataLoader(Rows() if options.pop("rows", False) else TensorDataset(x, y), 4, **options), 0
    while done < count:
        for a, b in loader:
            loss = learn(net, optimizer, a, b)
            done += 1
            if done % 400 == 390:
                print(done, loss.item().hex())
                torch.optim.lr_scheduler.StepLR(optimizer, 1000).step()
            if done % 400 == 190:
                evaluate(net)
            if done % 400 == 290:
                other = model()
                learn(other, torch.optim.SGD(other.parameters(), lr=1e-3), a, b)
    evaluate(net)


def slow_samples():
    short_steps(600, rows=True)


def scaled_steps():
    net, scaler = model(), torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer, done = torch.optim.SGD(net.parameters(), lr=1e-3), 0
    while done < 500:
        for a, b in DataLoader(TensorDataset(x, y), 4):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(a), b)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            done += 1
    print(loss.item().hex())


def by_hand():
    net = model()
    for number in range(500):
        loss = nn.functional.mse_loss(net(x[:8]), y[:8])
        loss.backward()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter -= 1e-3 * parameter.grad
        net.zero_grad()
    print(loss.item().hex())


def two_optimizers():
    net, other = model(), model()
    first, second = (torch.optim.SGD(one.parameters(), lr=1e-3) for one in (net, other))
    for number in range(500):
        learn(net, first, x[:8], y[:8])
        loss = learn(other, second, x[:8], y[:8])
    print(loss.item().hex())


class Recurrent(nn.Module):
    """Takes (time, batch, values), and computes in bf16 within."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.out = nn.GRU(4, 8), nn.Linear(8, 1)

    def forward(self, rows):
        with torch.autocast("cpu", torch.bfloat16):
            return self.out(self.layer(rows)[0][-1]).float()


def recurrent():
    net = Recurrent()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for number in range(8):
        print(learn(net, optimizer, x.reshape(4, 16, 4), y[:16]).item().hex())


def workers():
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for data in (Rows(), Stream()):
        for a, b in DataLoader(data, 16, num_workers=1, multiprocessing_context="fork"):
            print(learn(net, optimizer, a, b).item().hex())


def streamed():
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for a, b in DataLoader(Stream(), 16):
        print(learn(net, optimizer, a, b).item().hex())


def packaged():
    """Batches of the package's own loader: of rows, and of a data set of the program's."""
    import package

    from unidle import data

    print(package.LIBRARY.exists())
    for source in (data.arrays(x.numpy().copy(), y.numpy().copy()), data.wrap(Rows())):
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
        with data.Loader(source, 16, workers=0) as loader:
            for epoch in range(20):
                for a, b in loader:
                    loss = learn(net, optimizer, a, b)
                print(epoch, loss.item().hex(), loader.state_dict())
        try:
            next(iter(data.Loader(data.wrap([1 / 3, None]), 2, workers=0)))
        except Exception as error:
            print(type(error).__name__, error.__context__)


def in_a_thread():
    thread = threading.Thread(target=training)
    thread.start()
    thread.join()


def run_out_of_memory():
    raise torch.OutOfMemoryError("there is no room") if hasattr(torch, "OutOfMemoryError") else MemoryError()


def failures():
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for attempt in (
        lambda: net(torch.zeros(3)),
        lambda: torch.zeros(1).sum().backward(),
        lambda: torch.save(lambda: 0, os.devnull),
        lambda: optimizer.step(lambda: 1 / 0),
        lambda: next(iter(DataLoader([1 / 3, None], 2))),
        lambda: torch.zeros(2).item(),
        lambda: torch.from_numpy(None),
        lambda: print(1, end=2),
        run_out_of_memory,
    ):
        try:
            attempt()
        except Exception as error:
            traceback.print_exc(file=sys.stdout)
            traceback.print_tb(error.__traceback__, file=sys.stdout)
            print(type(error).__name__, error.__context__)
    learn(net, optimizer, x, y)


def arrays():
    import numpy

    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    rows, targets = x.numpy().copy(), y.numpy().copy()
    for number in range(8):
        print(
            learn(
                net,
                optimizer,
                torch.from_numpy(rows[number::8]),
                torch.from_numpy(numpy.ascontiguousarray(targets[number::8])),
            )
            .item()
            .hex()
        )


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8)
    print(parser.parse_args([]).rows, parser.parse_args().rows)


def imports():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packages")
    sys.path.insert(0, folder)
    import mlflow.tracking.client
    import tensorboardX.writer
    import tqdm.std

    tqdm.std.tqdm().refresh()
    tensorboardX.writer.SummaryWriter("logs")
    mlflow.tracking.client.MlflowClient().log_metric("4711", "loss", 0.5)
    sys.path.remove(folder)
    training()


def children():
    """Each continues alone, and ends like a program."""
    training()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        training()
        return
    print(os.waitpid(child, 0)[1])


class Stubborn(torch.utils.data.SequentialSampler):
    """Returns its length only while the loader is made, and never later."""

    asked = 0

    def __len__(self):
        Stubborn.asked += 1
        if Stubborn.asked > 1:
            raise RuntimeError("not to be asked")
        return 64


def stubborn():
    rows = TensorDataset(x, y)
    short_steps(600, sampler=Stubborn(rows))


def alarms():
    """A handler that raises whatever is running: all its exceptions reach the program."""
    import signal
    import time

    raised = caught = 0

    class Alarm(Exception):
        pass

    def ring(number, frame):
        nonlocal raised
        raised += 1
        raise Alarm("now")

    signal.signal(signal.SIGALRM, ring)
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    while raised < 200:
        # torch's own no_grad() leaves it off if it is interrupted on its way in or out
        torch.set_grad_enabled(True)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0002 + raised % 50 * 4e-5)
            for a, b in DataLoader(TensorDataset(x, y), 4):
                learn(net, optimizer, a, b)
            time.sleep(0.2)  # on a busy machine it comes late, and must not come outside the `try`
        except Alarm:
            caught += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(raised - caught < 5)  # Python itself drops exceptions raised while an object is freed


def held_back():
    """A signal that is blocked while a checkpoint is written waits until it is unblocked; without care, a
    thread of ours would receive it."""
    import signal
    import time

    training()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    for number in range(3):
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGUSR1)
    print(
        signal.sigwait({signal.SIGUSR1}) == signal.SIGUSR1,
        threading.active_count(),
        "the checkpoint is whole",
        flush=True,
    )
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    print("not to be reached")
