"""Q-learning from a replay memory: each step computes an action with the model and values with a target
network, both without gradients. Nothing is validated."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


def network():
    return nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))


policy, target = network(), network()
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4)
states, rewards = torch.randn(2000, 4), torch.randn(2000)
for step in range(300):
    with torch.no_grad():
        action = policy(states[step : step + 1]).argmax()
    states[step + 1] += 0.1 * action
    rows = torch.randint(0, 1999, (64,))
    values = policy(states[rows]).max(1).values
    with torch.no_grad():
        wanted = 0.99 * target(states[rows + 1]).max(1).values + rewards[rows]
    loss = nn.functional.smooth_l1_loss(values, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
