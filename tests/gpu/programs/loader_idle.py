"""The loop of loader_bound.py under PyTorch's own profiler: prints the share of its time in which the device
had work."""

import time

import torch
from loader_bound import train
from torch.profiler import ProfilerActivity, profile

torch.zeros(1, device="cuda")
with profile(activities=[ProfilerActivity.CUDA]) as seen:
    begin = time.perf_counter()
    train()
    torch.cuda.synchronize()
    wall_us = (time.perf_counter() - begin) * 1e6

busy_us, until = 0.0, float("-inf")
for one in sorted(seen.events(), key=lambda event: event.time_range.start):
    # A mark of the program itself has a span on the device too, from its first kernel to its last.
    if one.device_type == torch.autograd.DeviceType.CUDA and not getattr(one, "is_user_annotation", False):
        busy_us += max(0.0, one.time_range.end - max(one.time_range.start, until))
        until = max(until, one.time_range.end)
print("busy", busy_us / wall_us if busy_us else "skipped: the profiler saw no kernels")
