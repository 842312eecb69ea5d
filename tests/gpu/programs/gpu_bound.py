"""Large products; blocking copies from a loader that pins: the host waits, the device does not. The loader's
batches are small, and enlarged on the device, so that two workers keep up with any device on any host."""

import torch
from common import large, say, step, steps
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

SAMPLES, TIMES = 32, 256

model = large().to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
data = TensorDataset(torch.zeros(4096, 8192, dtype=torch.bfloat16))
sampler = RandomSampler(data, replacement=True, num_samples=SAMPLES * len(steps(400)))
for (x,) in DataLoader(data, SAMPLES, sampler=sampler, pin_memory=True, num_workers=2):
    loss = step(model, optimizer, x.to("cuda").repeat(TIMES, 1))
say(loss)
