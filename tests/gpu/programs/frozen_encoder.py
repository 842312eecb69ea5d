"""Nearly all of the device's work is a frozen encoder's, on batches that are changed on the device, without
gradients. A small head is trained on its output, and the head's weights are averaged."""

import torch
from common import large, say, step, steps
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

SAMPLES, TIMES = 32, 256

encoder = large().to(torch.bfloat16).eval().requires_grad_(False)
head = nn.Sequential(nn.Linear(8192, 64), nn.GELU(), nn.Linear(64, 1)).to("cuda", torch.bfloat16)
averages = [parameter.detach().clone() for parameter in head.parameters()]
optimizer = torch.optim.AdamW(head.parameters(), 1e-9, fused=True)
data = TensorDataset(torch.zeros(4096, 8192, dtype=torch.bfloat16))
sampler = RandomSampler(data, replacement=True, num_samples=SAMPLES * len(steps(400)))
for i, (x,) in enumerate(DataLoader(data, SAMPLES, sampler=sampler, pin_memory=True, num_workers=2)):
    x = x.to("cuda", non_blocking=True).repeat(TIMES, 1).flip(1) * 0.5
    with torch.no_grad():
        x = encoder(x)
    loss = step(head, optimizer, x)
    torch._foreach_lerp_(averages, list(head.parameters()), 0.01)
    if i % 10 == 0:
        loss.item()
say(loss)
