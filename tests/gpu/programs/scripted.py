"""torch.jit.script, torch.compile and torch.export of code with isnan, nonzero and item."""

import torch
import torch._dynamo.utils
from common import say, step, steps, tiny


def guarded(x: torch.Tensor):
    if torch.isnan(x).any():
        x = torch.zeros_like(x)
    return x * (torch.nonzero(x > 0).size(0) + 1)


model = tiny()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
x = torch.randn(8, 256, device="cuda")
for _ in steps(300):
    loss = step(model, optimizer, x)
print(torch.jit.script(guarded)(x).sum().item().hex())
compiled = torch.compile(model, fullgraph=True)
for _ in steps(100):
    loss = step(compiled, optimizer, x)
print(torch.export.export(model, (x,)).graph_module.code.count("linear"))
broken = torch.compile(lambda t: t * t.sum().item() + torch.isnan(t).sum())
broken(x), broken(x * 2)
counters = torch._dynamo.utils.counters
print(dict(counters["frames"]), sum(counters["graph_break"].values()))
say(loss)
