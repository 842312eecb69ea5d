"""Trains, and every ten steps saves three files as one checkpoint, and validates after two of them."""

import sys
import tempfile
import time

import torch

torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(32, 8), torch.randn(32, 1)
held_out = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16)


def validate():
    model.eval()
    with torch.no_grad():
        for inputs, labels in held_out:
            torch.nn.functional.mse_loss(model(inputs), labels).item()
            time.sleep(0.01)
    model.train()


with tempfile.TemporaryDirectory() as folder:
    for step in range(1, 101):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        if step % 10 == 0:
            for name in ("model", "optimizer"):
                torch.save(model.state_dict(), folder + "/" + name)
                time.sleep(float(sys.argv[1]))
            if step % 50 == 0:
                validate()
            torch.save({"step": step}, folder + "/best")
