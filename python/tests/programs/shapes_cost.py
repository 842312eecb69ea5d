"""What record_shapes costs: windows of five steps of a small transformer with and without it, in pairs."""

import os
import tempfile
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(2)
layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
optimizer = torch.optim.AdamW(model.parameters())


def step():
    model(torch.randn(8, 64, 128)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def window(shapes, path):
    with torch.autograd.profiler.profile(use_kineto=True, record_shapes=shapes) as profile:
        begin = time.perf_counter()
        for _ in range(5):
            step()
        took = time.perf_counter() - begin
    profile.export_chrome_trace(path)
    return took * 1e3, os.path.getsize(path) / 1e6


for _ in range(10):
    step()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "trace.json")
    window(False, path), window(True, path)  # the first ones load the profiler
    for pair in range(5):
        order = (False, True) if pair % 2 else (True, False)
        taken = {shapes: window(shapes, path) for shapes in order}
        print("without %.0f ms, %.1f MB; with %.0f ms, %.1f MB" % (taken[False] + taken[True]))
