"""Allows TF32 by the newer name of the setting, then trains many short steps."""

import torch
from common import say, step, steps, tiny

model = tiny()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
x = torch.randn(8, 256, device="cuda")
if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
    torch.backends.cuda.matmul.fp32_precision = "tf32"
for _ in steps(20000):
    loss = step(model, optimizer, x)
say(loss)
