loader.workers 2 3
batch.accumulation 2 6
batch.size 8 3

import torch
accum = 4
loader = DataLoader(data, batch_size=32, shuffle=True,  # a comment
    num_workers = 0, **more)
model = f"""{x!r}"""
for i, batch in enumerate(loader):
    if (i + 1) % accum == 0:
        opt.zero_grad()
