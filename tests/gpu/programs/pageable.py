"""Large batches from pageable memory, and little work on them."""

import torch
from common import say, steps, tiny

model = tiny()
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
host = [torch.zeros(65536, 256) for _ in range(4)]  # 64 MB each
for i in steps(400):
    x = host[i % 4].to("cuda")
    optimizer.zero_grad(set_to_none=True)
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
say(loss)
