"""Two ranks of DistributedDataParallel; the given one works longer in each step, the other before its first
backward pass.
`torchrun --nproc_per_node 2 ranks.py RANK`
"""

import sys
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(640, 16), torch.randn(640, 1))
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(loader):
        slow = distributed.get_rank() == int(sys.argv[1])
        if slow:
            time.sleep(0.05)
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        if step == 0 and not slow:
            time.sleep(2)
        loss.backward()
        optimizer.step()
    distributed.destroy_process_group()


main()
