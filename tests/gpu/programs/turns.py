"""turns.py host|device|graph: trains for the number of seconds in each line of its input, and answers with
the steps and the seconds that they took. Steps take about a millisecond: of launches, of products, or of
replays of a graph of tiny kernels."""

import sys
import time

import torch
from common import large, step
from torch import nn

kind = sys.argv[1]
torch.backends.cuda.matmul.allow_tf32 = True
if kind == "device":
    model, x = (
        large(width=4096, layers=3).to(torch.bfloat16),
        torch.zeros(1024, 4096, device="cuda", dtype=torch.bfloat16),
    )
else:
    model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(3)]).cuda()
    x = torch.randn(4, 64, device="cuda")
optimizer = torch.optim.AdamW(model.parameters(), 1e-9, fused=True, capturable=kind == "graph")


def one():
    step(model, optimizer, x)


if kind == "graph":
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            one()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        one()
    one = graph.replay  # noqa: F811
one()
torch.cuda.synchronize()
print("ready", flush=True)
for line in sys.stdin:
    seconds = float(line)
    begin = now = time.perf_counter()
    count = 0
    while now - begin < seconds:
        for _ in range(10):
            one()
        count += 10
        if count % 100 == 0:  # so that the host is not far ahead
            torch.cuda.synchronize()
        now = time.perf_counter()
    torch.cuda.synchronize()
    print(count, time.perf_counter() - begin, flush=True)
