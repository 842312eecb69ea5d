"""Copies from pinned memory run ahead in a separate stream."""

import torch
from common import large, say, step, steps

model = large(4096)
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
host = [torch.zeros(4096, 4096).pin_memory() for _ in range(2)]
ahead = torch.cuda.Stream()
current = torch.cuda.current_stream()


def fetch(i):
    with torch.cuda.stream(ahead):
        return host[i % 2].to("cuda", non_blocking=True)


coming = fetch(0)
for i in steps(200):
    current.wait_stream(ahead)
    x = coming
    x.record_stream(current)
    coming = fetch(i + 1)
    loss = step(model, optimizer, x)
say(loss)
