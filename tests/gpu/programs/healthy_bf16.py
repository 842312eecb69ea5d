"""Large products in bf16, a fused optimiser; the loss is rarely read."""

import torch
from common import large, say, steps

model = large()
optimizer = torch.optim.AdamW(model.parameters(), 1e-9, fused=True)
x = torch.randn(8192, 8192, device="cuda")
for i in steps(300):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    if i % 100 == 0:
        loss.item()
say(loss)
