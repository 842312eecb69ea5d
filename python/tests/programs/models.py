"""Programs whose outermost modules are not all known from the beginning; see test_module_classes.py. Prints
results that must not change."""

import copy
import io
import pickle
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(16, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 1)
        )

    def forward(self, x):
        return self.body(x)


class Late(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return 0.5 * self.net(x)


class Derived(Net):
    pass


class OwnCall(Net):
    def __call__(self, *args, **kwargs):
        return 2 * super().__call__(*args, **kwargs)


torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(256, 16), torch.randn(256, 1)
train = DataLoader(TensorDataset(x, y), batch_size=32)
held_out = DataLoader(TensorDataset(x, y), batch_size=64)


def fit(net, epochs=1):
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    for _ in range(epochs):
        for a, b in train:
            opt.zero_grad()
            loss = ((net(a) - b) ** 2).mean()
            loss.backward()
            opt.step()
    print(loss.item().hex(), flush=True)


@torch.no_grad()
def evaluate(net):
    print(sum(((net(a) - b) ** 2).sum() for a, b in held_out).item().hex())


def narrowed(kind):
    """Prints something only if the program is observed."""
    session = sys.modules.get("_unidle_shim.session")
    if session is not None:
        assert "__call__" in vars(kind), "the class is not patched"
        assert "__call__" in vars(nn.Module) and not session.state.module_classes.watching


def main(mode):
    net = Net()
    if mode == "trained_late":
        fit(net, 6)
        narrowed(Net)
        fit(Late(net), 6)
        narrowed(Late)
    elif mode == "validated_late":
        for epoch in range(6):
            fit(net)
            evaluate(net if epoch < 3 else Late(net))
    elif mode == "evaluated_late":  # no loader: only eval() shows it
        fit(net, 6)
        narrowed(Net)
        for _ in range(3):
            late = Late(copy.deepcopy(net)).eval()
            with torch.no_grad():
                print(sum(late(part).sum() for part in x.split(64)).item().hex())
            fit(net, 2)
    elif mode == "nested":
        tower = nn.Sequential(nn.Sequential(nn.Linear(16, 8), nn.Sequential(nn.ReLU())), nn.Linear(8, 1))
        fit(tower, 6)
        narrowed(nn.Sequential)
    elif mode == "derived":
        fit(net, 4)
        fit(Derived(), 4)
        fit(net, 2)
    elif mode == "own_call":
        fit(OwnCall(), 4)
        assert "__call__" in vars(OwnCall) and OwnCall.__call__.__qualname__ == "OwnCall.__call__"
    elif mode == "handed_on":
        fit(net, 6)
        narrowed(Net)
        assert (
            pickle.loads(
                pickle.dumps(vars(Net)["__call__"] if "__call__" in vars(Net) else nn.Module.__call__)
            )
            is nn.Module.__call__
        )
        torch.save(net, io.BytesIO())
        net.eval()
        want = net(x)
        graph = torch.fx.symbolic_trace(net)
        for other in (
            copy.deepcopy(net),
            pickle.loads(pickle.dumps(net)),
            torch.jit.script(net),
            torch.jit.trace(net, (x,)),
            graph,
        ):
            assert torch.equal(other(x), want), other
        print([node.op for node in graph.graph.nodes])
        if hasattr(torch, "export"):
            print(torch.export.export(net, (x,)).graph)
        fit(graph, 2)
        fit(net, 2)
        if hasattr(torch, "compile"):
            compiled = torch.compile(net, backend="eager", fullgraph=True)
            fit(compiled, 3)
            fit(net, 2)


main(sys.argv[1])
