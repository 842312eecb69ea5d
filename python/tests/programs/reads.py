"""Reads its losses in each step, in ways that are merely logging and in others. `python reads.py HOW [cuda]`

Without a GPU tensors only claim to lie on one, and copies arrive three copies later.
"""

import sys

how, device = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "claimed"
if device == "claimed":
    from claimed import Claimed, waited
else:
    waited = [0, 0]

import torch  # noqa: E402
from torch import nn  # noqa: E402


def placed(loss):
    return loss.as_subclass(Claimed) if device == "claimed" else loss


torch.manual_seed(0)
where = "cpu" if device == "claimed" else device
model = nn.Linear(8, 1).to(where)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(torch.randn(240, 8), torch.randn(240, 1))
loader = torch.utils.data.DataLoader(data, batch_size=8)


def step(x, y):
    loss = nn.functional.mse_loss(model(x.to(where)), y.to(where))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return placed(loss)


def summed(epoch):
    """As most programs do."""
    total, seen = 0.0, 0
    for i, (x, y) in enumerate(loader):
        loss = step(x, y)
        total += loss.item() * len(x)
        seen += len(x)
        with torch.no_grad():
            loss.zero_()  # what was read is read
        if i % 10 == 9:
            print("step %d: loss %.17g" % (i, total / seen))
    return total / seen


def listed(epoch):
    losses, right = [], 0
    for x, y in loader:
        losses.append(step(x, y).item())
        right += placed((y > 0).sum()).item()
    print(f"epoch {epoch}: {sum(losses) / len(losses)!r}, the last {losses[-1]:.17g}, {right} of {len(data)}")


def decides(epoch):
    for x, y in loader:
        value = step(x, y).item()
        if value > 3:
            print("high", value)


def at_once(epoch):
    for x, y in loader:
        print(step(x, y).item())


for epoch in range(3):
    if how == "summed":
        mean = summed(epoch)
        print("epoch", epoch, mean)
    elif how == "listed":
        listed(epoch)
    elif how == "decides":
        decides(epoch)
    else:
        at_once(epoch)
print("came later %d, waited for %d" % tuple(waited), file=sys.stderr)
