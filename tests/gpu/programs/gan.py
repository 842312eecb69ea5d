"""Two optimisers in one step."""

import torch
from common import large, say, steps

g, d = large(2048), large(2048)
og, od = torch.optim.Adam(g.parameters(), 1e-5), torch.optim.Adam(d.parameters(), 1e-5)
for _ in steps(400):
    z, real = torch.randn(2048, 2048, device="cuda"), torch.randn(2048, 2048, device="cuda")
    od.zero_grad()
    loss_d = d(real).mean() - d(g(z).detach()).mean()
    loss_d.backward()
    od.step()
    og.zero_grad()
    loss_g = d(g(z)).mean()
    loss_g.backward()
    og.step()
say(loss_g)
