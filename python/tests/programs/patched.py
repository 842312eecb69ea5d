"""Every query that may be made of a patched function; see test_patches.py. `patched.py FILE`: FILE has the
names and, if the program is observed, they are those of its patches, and are written there. Prints the result
of each query."""

import copy
import functools
import importlib
import inspect
import io
import json
import logging
import pickle
import sys
import warnings

import torch
import torch.export
import torch.fx
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def names_in(path):
    patches = sys.modules.get("_unidle_shim.host.patching")
    if patches is not None:
        places = [
            (owner.__name__, "", name)
            if inspect.ismodule(owner)
            else (owner.__module__, owner.__qualname__, name)
            for owner, name in patches.in_place
        ]
        with open(path, "w") as file:
            json.dump(sorted(set(places)), file)
    with open(path) as file:
        return [tuple(place) for place in json.load(file)]


def owner_of(module, qualified):
    return functools.reduce(getattr, filter(None, qualified.split(".")), importlib.import_module(module))


def one_by_one(function, owner, name):
    """Each query separately, so that one that raises does not hide the rest."""
    answers = {}
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__text_signature__"):
        answers[attribute] = repr(getattr(function, attribute, None))
    for key, question in (
        ("type", lambda: type(function).__name__),
        ("self", lambda: type(getattr(function, "__self__", None)).__name__),
        ("signature", lambda: str(inspect.signature(function))),
        ("source", lambda: inspect.getsource(function)),
        ("same", lambda: function is getattr(owner, name)),
        ("copied", lambda: copy.deepcopy(function) is function),
        ("pickled", lambda: pickle.loads(pickle.dumps(function)) == function),
        ("builtin", lambda: inspect.isbuiltin(function)),
        ("function", lambda: inspect.isfunction(function)),
        ("method", lambda: inspect.ismethoddescriptor(function)),
        ("named", lambda: torch.overrides.resolve_name(function)),
        (
            "overridable",
            lambda: any(function in some for some in torch.overrides.get_overridable_functions().values()),
        ),
        ("testing", lambda: function in torch.overrides.get_testing_overrides()),
        ("ignored", lambda: function in torch.overrides.get_ignored_functions()),
    ):
        try:
            answers[key] = question()
        except Exception as error:
            answers[key] = "%s: %s" % (
                type(error).__name__,
                str(error).split("\n")[0].split(" at 0x")[0][:100],
            )
    return answers


# -- programs that are compiled, traced, scripted and mapped, each with the functions that are patched in them
# ------------------------------

torch.manual_seed(0)


def reads_item(x):
    return x * x.sum().item()


def reads_float(x):
    return x * float(x.sum())


def reads_int(x):
    return x * int(x.sum())


def branches(x):
    return x + 1 if x.sum() > 0 else x - 1


def reads_list(x):
    return x + len(x.tolist())


def reads_array(x):
    return x + x.numpy().shape[0]


def to_host(x):
    return x.cpu() + 1


def moved(x):
    return x.to(torch.float64) + 1


def prints(x):
    print("in between")
    return x + 1


def collects(x):
    import gc

    gc.collect()
    return x + 1


def looks_for_nan(x):
    return torch.isnan(x)


def looks_for_places(x):
    return torch.nonzero(x)


def from_array(x):
    return torch.from_numpy(x.numpy()) + 1


def logs(x):
    logging.getLogger("patched").info("in between")
    return x + 1


def synchronizes(x):
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return x + 1


def forward(x, net=nn.Sequential(nn.Linear(3, 3), nn.ReLU())):
    return net(x)


def switches(x, net=nn.Linear(3, 3)):
    net.eval()
    net.train()
    return net(x)


def saves(x):
    torch.save(x, io.BytesIO())
    return x + 1


PROGRAMS = (
    reads_item,
    reads_float,
    reads_int,
    branches,
    reads_list,
    reads_array,
    to_host,
    moved,
    prints,
    collects,
    looks_for_nan,
    looks_for_places,
    from_array,
    logs,
    synchronizes,
    forward,
    switches,
    saves,
)
X = torch.arange(9.0).reshape(3, 3)


def compiled(program, fullgraph):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    graphs = []

    def backend(graph, inputs):
        graphs.append(
            [
                str(
                    node.target
                    if isinstance(node.target, str)
                    else getattr(node.target, "__name__", node.target)
                )
                for node in graph.graph.nodes
            ]
        )
        return graph.forward

    result = torch.compile(program, backend=backend, fullgraph=fullgraph)(X)
    counters = torch._dynamo.utils.counters
    return (
        result.tolist(),
        graphs,
        sum(counters["graph_break"].values()),
        dict(counters["frames"]),
        sum(counters["recompiles"].values()),
    )


def training_steps():
    """A whole step with graph breaks: the code after each one is compiled separately."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    graphs = []

    def backend(graph, inputs):
        graphs.append(len(graph.graph.nodes))
        return graph.forward

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []

    @torch.compile(backend=backend)
    def step(x):
        optimizer.zero_grad()
        loss = net(x).sum()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.item()))
        print("step", len(losses) > 0)
        return loss

    for (x,) in DataLoader(TensorDataset(torch.ones(12, 3)), 3):
        step(x)
    counters = torch._dynamo.utils.counters
    return losses, graphs, sum(counters["graph_break"].values()), dict(counters["frames"])


def ways(program):
    yield "eager", lambda: program(X).tolist()
    yield "script", lambda: str(torch.jit.script(program).graph)
    yield "trace", lambda: str(torch.jit.trace(program, X).graph)
    yield "fx", lambda: torch.fx.symbolic_trace(program).code
    yield "vmap", lambda: torch.vmap(program)(X).tolist()
    yield "compile", lambda: compiled(program, False)
    yield "fullgraph", lambda: compiled(program, True)
    yield "export", lambda: torch.export.export(Exported(program), (X,)).graph_module.code


class Exported(nn.Module):
    def __init__(self, program):
        super().__init__()
        self.program = program

    def forward(self, x):
        return self.program(x)


class Logged(torch.Tensor):
    """Logs torch's queries."""

    asked = []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.asked.append(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, types, args, kwargs or {})


def subclassed():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.ones(2, 3).as_subclass(Logged)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        (
            float(loss),
            loss.item(),
            bool(loss),
            int(loss),
            loss.tolist(),
            loss.detach().numpy(),
            loss.cpu(),
            loss.to(torch.float64),
        )
    return Logged.asked


def answer(question):
    try:
        return question()
    except Exception as error:
        return "%s: %s" % (type(error).__name__, str(error).split("\n")[0][:60])


def warm():
    """A few steps, so that the program is followed if it is observed."""
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for (x,) in DataLoader(TensorDataset(torch.ones(12, 3)), 3):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()


def main(path):
    warnings.simplefilter("ignore")
    answers = {}
    for module, qualified, name in names_in(path):
        owner = owner_of(module, qualified)
        answers[".".join(filter(None, (module, qualified, name)))] = one_by_one(
            getattr(owner, name), owner, name
        )
    warm()
    for program in PROGRAMS:
        for way, question in ways(program):
            answers["%s: %s" % (program.__name__, way)] = answer(question)
    answers["training steps"] = answer(training_steps)
    answers["a subclass of Tensor"] = answer(subclassed)
    sys.stderr.write(json.dumps(answers, default=str) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
