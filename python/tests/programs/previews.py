"""Inspects results of the model while it trains, without gradients and in training mode; see
test_program_forms.py."""

import io
import logging
import sys

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
mode = sys.argv[1]
data = TensorDataset(torch.randn(320, 3, 16, 16))
make = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3 * 16 * 16))
judge = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 64), nn.ReLU(), nn.Linear(64, 1))
of_make, of_judge = (torch.optim.Adam(net.parameters(), lr=1e-3) for net in (make, judge))
fixed = torch.randn(16, 8)
log = logging.getLogger("previews")
logging.basicConfig(stream=sys.stderr, level=logging.INFO)


def draw(pictures):
    for one in pictures:
        pixels = (one.clamp(0, 1) * 255).byte().reshape(16, 48).numpy()
        Image.fromarray(pixels).resize((480, 160)).save(io.BytesIO(), "png")


def look():
    if mode == "drawn":
        with torch.no_grad():
            draw(make(fixed))
    elif mode == "pictures":  # now and then, of many points
        with torch.no_grad():
            draw([torch.stack([make(torch.randn(64, 8)).mean(0) for _ in range(2000)]).mean(0)])
    elif mode == "logged":
        with torch.no_grad():
            log.info("mean %.4f", make(fixed).mean())
    elif mode == "validates":  # without eval(), on its own data, now and then
        with torch.no_grad():
            loss = sum(judge(torch.randn(64, 3, 16, 16)).mean().item() for _ in range(20))
        print("validation %.4f" % loss)


number = 0
for _epoch in range(4):
    for (real,) in DataLoader(data, batch_size=16, shuffle=True):
        of_judge.zero_grad()
        fake = make(torch.randn(len(real), 8)).reshape(real.shape)
        (judge(fake.detach()).mean() - judge(real).mean()).backward()
        of_judge.step()
        of_make.zero_grad()
        (-judge(fake).mean()).backward()
        of_make.step()
        number += 1
        if mode not in ("validates", "pictures") or number % 20 == 0:
            look()
