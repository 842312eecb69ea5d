"""The speed of this card with torch alone: products, copies on the device and over the link, a launch. Prints
JSON."""

import json
import time

import torch

SIZE, BYTES = 8192, 1 << 30


def seconds_of(work, calls):
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / calls


def product(dtype):
    a, b = (torch.randn(SIZE, SIZE, device="cuda").to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    return 2 * SIZE**3 / seconds_of(lambda: torch.mm(a, b, out=out), 20) * 1e-12


source, target = (torch.empty(BYTES, dtype=torch.uint8, device="cuda").random_() for _ in range(2))
host = torch.zeros(BYTES // 8, dtype=torch.uint8).random_()
pinned, small = host.pin_memory(), torch.zeros(1, device="cuda")
told = {
    "bf16_tflops": product(torch.bfloat16),
    "device_copy_bytes_s": 2 * BYTES / seconds_of(lambda: target.copy_(source), 20),  # read and written
    "copy_pinned_bytes_s": len(host)
    / seconds_of(lambda: target[: len(host)].copy_(pinned, non_blocking=True), 20),
    "copy_pageable_bytes_s": len(host) / seconds_of(lambda: target[: len(host)].copy_(host), 5),
    "launch_s": seconds_of(lambda: small.add_(1), 5000),
}
print(json.dumps(told))
