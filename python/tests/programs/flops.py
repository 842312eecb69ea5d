"""Trains a model with the operations that most models have, and prints what torch counts for one step."""

import torch
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.picture = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, stride=2, padding=1),
            torch.nn.ReLU(),
            torch.nn.ConvTranspose2d(8, 8, 3, stride=2, output_padding=1, padding=1),
            torch.nn.Conv2d(8, 4, 5, dilation=2),
        )
        self.text = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.last = torch.nn.Linear(32, 3)

    def forward(self, pictures, texts):
        return self.picture(pictures).mean() + self.last(self.text(texts)).sum()


model = Model()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)


def step():
    loss = model(torch.randn(4, 3, 32, 32), torch.randn(4, 10, 32))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


with FlopCounterMode(display=False) as counter:
    step()
for _ in range(40):
    step()
print(counter.get_total_flops())
