"""Trains, and records the model's graph in all of torch's ways. A warning about a trace is an error."""

import warnings

import torch

warnings.simplefilter("error", torch.jit.TracerWarning)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
done = 0


class Around(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x.to(torch.float64).float()) * x.shape[0]


def train():
    global done
    for _ in range(12):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        done += 1


print(torch.jit.trace(Around(), torch.ones(3, 8)).inlined_graph)
train()
print(torch.jit.trace(model, torch.ones(1, 8)).inlined_graph)
train()
print(torch.jit._get_trace_graph(model, torch.ones(2, 8))[0])
train()
print(torch.fx.symbolic_trace(model).code)
train()
if hasattr(torch, "export") and hasattr(torch.export, "Dim"):
    any_size = ({0: torch.export.Dim("batch", min=2)},)
    print(torch.export.export(model, (torch.ones(3, 8),), dynamic_shapes=any_size).graph)
    train()
print("steps", done)
