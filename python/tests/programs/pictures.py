"""A small convolutional net on generated pictures, to which every setting applies."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
batch_size = int(sys.argv[2]) if sys.argv[1:2] == ["--batch-size"] else 16
data = TensorDataset(torch.randn(64, 3, 16, 16), torch.randn(64, 4))
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(8, 8, 3),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(8, 4),
)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _epoch in range(3):
    for x, y in DataLoader(data, batch_size=batch_size, shuffle=True):
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad(set_to_none=False)
        loss.backward()
        opt.step()
    print(loss.item())
