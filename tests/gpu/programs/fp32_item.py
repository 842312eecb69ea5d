"""Large products in fp32, and the loss is read in each step."""

import torch
from common import large, say, step, steps

torch.backends.cuda.matmul.allow_tf32 = False
model = large()
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
x = torch.randn(8192, 8192, device="cuda")
for _ in steps(40):
    loss = step(model, optimizer, x)
    loss.item()
say(loss)
