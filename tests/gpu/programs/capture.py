"""Forward pass, backward pass and optimiser in a CUDA graph, which is replayed."""

import torch
from common import say, step, steps, tiny

model = tiny()
optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
x = torch.randn(32, 256, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(5):
        step(model, optimizer, x)
torch.cuda.current_stream().wait_stream(side)
for _ in steps(50):  # so that observation is fully active when the capture begins
    step(model, optimizer, x)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
for _ in steps(2000):
    graph.replay()
say(loss)
