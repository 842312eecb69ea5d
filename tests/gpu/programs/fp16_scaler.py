"""fp16 autocast with a GradScaler."""

import torch
from common import large, say, steps

model = large(2048)
optimizer = torch.optim.AdamW(model.parameters(), 1e-6)
scaler = torch.amp.GradScaler("cuda")
x = torch.randn(2048, 2048, device="cuda")
for _ in steps(400):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.float16):
        loss = model(x).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
say(loss)
