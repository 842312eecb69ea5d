"""Large products; blocking copies from a loader that pins: the host waits, the device does not."""

import torch
from common import large, say, step, steps
from torch.utils.data import DataLoader, TensorDataset

model = large().to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
data = TensorDataset(torch.zeros(16384, 8192, dtype=torch.bfloat16))
left = iter(steps(120))
while True:
    for (x,) in DataLoader(data, 4096, pin_memory=True, num_workers=2):
        if next(left, None) is None:
            break
        loss = step(model, optimizer, x.to("cuda"))
    else:
        continue
    break
say(loss)
