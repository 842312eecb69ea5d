"""Twelve epochs with a validation after each, in the way that is named; prints the losses of training to the
last digit.

`validates.py function|method|returns|dropped|trains|draws|saves|stops|remembers|loop`
"""

import io
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
        """Says what it finds."""
        print("held out %s %.3f" % (name, self.look()), file=sys.stderr)

    def draws(self):
        if random.random() < 2:
            print(self.look(), file=sys.stderr)

    def saves(self):
        self.look()
        torch.save(self.net.state_dict(), io.BytesIO())

    def stops(self):
        self.look()
        if len(self.losses) == 5:
            self.done = True

    def remembers(self):
        self.history.append(self.look())

    def trains(self):
        self.look()
        for x, y in self.train_loader:
            self.step(x, y)


def function(experiment):
    print(experiment.look(), file=sys.stderr)


def main(how):
    experiment = Experiment()
    for _ in range(12):
        for x, y in experiment.train_loader:
            loss = experiment.step(x, y)
        print(loss.hex())
        if how == "function":
            function(experiment)
        elif how == "returns":
            loss = experiment.look()
        elif how == "dropped":
            experiment.look()
        elif how == "loop":
            experiment.net.eval()
            experiment.net(x)
            experiment.net.train()
        else:
            getattr(experiment, how)()
        if experiment.done or experiment.history[-3:] == [0, 0, 0]:
            break
    if how == "dropped":
        print(experiment.look(), file=sys.stderr)


main(sys.argv[1])
