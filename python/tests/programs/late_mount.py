"""A loader whose first iterator cannot be made; the program goes on with the next epoch."""

import torch


class Batches:
    asked = 0

    def __len__(self):
        return 8

    def __iter__(self):
        self.asked += 1
        if self.asked == 1:
            raise OSError("not mounted yet")
        return iter([list(range(8 * batch, 8 * batch + 8)) for batch in range(8)])


data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
loader = torch.utils.data.DataLoader(data, batch_sampler=Batches())
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for epoch in range(4):
    try:
        for x, y in loader:
            optimizer.zero_grad()
            (net(x) - y).pow(2).mean().backward()
            optimizer.step()
    except OSError:
        pass
