"""A language model in a common form: it has no DataLoader, takes time before batch, and uses no optimiser
unless requested."""

import pickle
import sys

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        if sys.argv[1] == "spare":
            self.spare = nn.LSTM(16, 16)  # never called
        self.embedding, self.layers, self.out = nn.Embedding(50, 16), nn.LSTM(16, 16), nn.Linear(16, 50)

    def forward(self, words, state):
        seen, state = self.layers(self.embedding(words), state)
        return self.out(seen).view(-1, 50), state


torch.manual_seed(0)
torch.set_num_threads(1)
text = torch.randint(50, (35 * 24 + 1, 4))
model, criterion = Model(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), 0.1) if sys.argv[1] == "optimizer" else None
for epoch in range(2):
    model.train()
    state = (torch.zeros(1, 4, 16), torch.zeros(1, 4, 16))
    for begin in range(0, len(text) - 1, 35):
        state = tuple(one.detach() for one in state)
        model.zero_grad()
        result, state = model(text[begin : begin + 35], state)
        loss = criterion(result, text[begin + 1 : begin + 36].view(-1))
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        else:
            for parameter in (one for one in model.parameters() if one.grad is not None):
                parameter.data.add_(parameter.grad, alpha=-0.1)
    model.eval()
    with torch.no_grad():
        state = (torch.zeros(1, 4, 16), torch.zeros(1, 4, 16))
        print(epoch, criterion(model(text[:35], state)[0], text[1:36].view(-1)).item().hex())
print(len(pickle.dumps(model)))
