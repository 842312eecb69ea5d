"""Twelve epochs with a validation after each, in the given way; prints the training losses with all digits.

`validates.py WAY...`, where WAY is function, method, returns, chooses, dropped, trains, draws, shuffles,
picks, saves, pickles, schedules, plateau, patient, listed, stopper, raises, stops, remembers, recalls,
tallies or loop. Several ways run in a fork each.
"""

import collections
import io
import os
import pickle
import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Experiment:
    def __init__(self):
        torch.manual_seed(0)
        data = torch.randn(64, 8)
        self.train_loader = DataLoader(
            TensorDataset(data, data.sum(1, keepdim=True)), batch_size=16, shuffle=True
        )
        self.held_out = DataLoader(
            TensorDataset(data[:32], data[:32].sum(1, keepdim=True)), batch_size=16, shuffle=True
        )
        self.net = nn.Linear(8, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.losses = []
        self.history = []
        self.tally = {"worse": 0, "better": 0}
        self.numbers = random.Random(0)
        self.recent = collections.deque(maxlen=3)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, patience=3, threshold=0.9)
        self.done = False

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def look(self):
        self.net.eval()
        total = sum(nn.functional.mse_loss(self.net(x), y).item() for x, y in self.held_out)
        self.net.train()
        self.losses.append(total)
        print("validated", file=sys.stderr)
        return total

    def method(self, name="loss"):
        """Prints its result."""
        print("held out %s %.3f" % (name, self.look()), file=sys.stderr)

    def draws(self):
        if random.random() < 2:
            print(self.look(), file=sys.stderr)

    def share_a_generator(self):
        """One for both loaders, as in torch's notes on reproducibility."""
        order = torch.Generator()
        self.train_loader, self.held_out = (
            DataLoader(one.dataset, batch_size=16, shuffle=True, generator=order)
            for one in (self.train_loader, self.held_out)
        )

    def shuffles(self):
        self.look()

    def picks(self):
        """From a generator of its own, as the training does."""
        if self.numbers.random() < 2:
            self.look()

    def chooses(self, rank=0):
        total = self.look()
        return total if rank == 0 else None

    def tallies(self):
        self.tally["worse" if self.look() > 0 else "better"] += 1

    def saves(self):
        self.look()
        torch.save(self.net.state_dict(), io.BytesIO())

    def stops(self):
        self.look()
        if len(self.losses) == 5:
            self.done = True

    def remembers(self):
        self.history.append(self.look())

    def recalls(self):
        self.recent.append(self.look())

    def is_worse(self):
        return len(self.recent) == 3 and self.recent[0] > 0.9 * self.recent[2]

    def patient(self):
        self.scheduler.step(self.look())

    def trains(self):
        self.look()
        for x, y in self.train_loader:
            self.step(x, y)


class EndOfTraining(Exception):
    """Raised when there is no more improvement."""


class Stopper:
    """As in many programs: it receives each validation, and only its own class reads it."""

    def __init__(self):
        self.worse = 0

    def tell(self, loss):
        self.worse += loss > 0


def pickles(experiment, path=os.devnull):
    with open(path, "wb") as file:
        pickle.dump(experiment.look(), file)


def schedules(experiment, scheduler):
    experiment.look()
    scheduler.step()


def plateau(experiment, scheduler=None):
    PLATEAU[0].step(experiment.look())


def listed(experiment, history):
    history.append(experiment.look())


def stopper(experiment, stopper):
    stopper.tell(experiment.look())


def raises(experiment):
    if experiment.look() < 0 or len(experiment.losses) == 7:
        raise EndOfTraining()


PLATEAU = []


def function(experiment):
    print(experiment.look(), file=sys.stderr)


def main(how):
    experiment = Experiment()
    rates = torch.optim.lr_scheduler
    PLATEAU.append(rates.ReduceLROnPlateau(experiment.optimizer, patience=0, threshold=0.9))
    given = {
        "schedules": [rates.StepLR(experiment.optimizer, 1)],
        "listed": [[]],
        "stopper": [Stopper()],
    }
    if how == "shuffles":
        experiment.share_a_generator()
    for _ in range(12):
        for x, y in experiment.train_loader:
            loss = experiment.step(x, y)
        print(loss.hex(), experiment.numbers.random())
        if how == "function":
            function(experiment)
        elif how in ("returns", "last"):
            loss = experiment.look()
        elif how == "chooses":
            if experiment.chooses() is None:
                break
        elif how == "dropped":
            experiment.look()
        elif how == "loop":
            experiment.net.eval()
            experiment.net(x)
            experiment.net.train()
        elif hasattr(experiment, how):
            getattr(experiment, how)()
        else:
            try:
                globals()[how](experiment, *given.get(how, []))
            except EndOfTraining:
                break
        if experiment.done or experiment.history[-3:] == [0, 0, 0] or experiment.is_worse():
            break
        if any(experiment.tally[name] == 5 for name in ("worse", "better")):
            break
    if how == "dropped":
        print(experiment.look(), file=sys.stderr)
    elif how == "last":
        function(experiment)


def in_forks(ways):
    """Each in its own process, one after another: torch is imported once. A line `== WAY PROCESS` begins the
    output of each, on both streams."""
    import torch._dynamo  # noqa: F401 - the first optimiser would import it in each of them

    for how in ways:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            for stream in (sys.stdout, sys.stderr):
                print("==", how, os.getpid(), file=stream, flush=True)
            return main(how)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit("%s failed" % how)


if len(sys.argv) > 2:
    in_forks(sys.argv[1:])
else:
    main(sys.argv[1])
