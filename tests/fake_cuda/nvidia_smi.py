#!/usr/bin/env python3
"""The part of nvidia-smi that the GPU suite uses, for the first pretend GPU: from the script of the fake NVML
and the logs of the fake CUDA device."""

import os
import struct
import sys
import time

KEYS = {}
with open(os.environ["UNIDLE_FAKE_NVML_SCRIPT"]) as script:
    for line in script:
        words = line.split()
        if len(words) > 1 and not line.startswith("#"):
            KEYS[words[0]] = words[1]
total, used = (int(part) for part in KEYS["memory"].split(":"))


def busy_ns():
    """The time for which the device has computed so far."""
    with open(KEYS["utilisation"].partition(":")[2], "rb") as books:
        queued, until = struct.unpack("qq", books.read(16))
    return queued - max(0, until - time.monotonic_ns())


def told(columns, seconds):
    before = busy_ns() if "utilization.gpu" in columns else 0
    time.sleep(seconds)
    values = {"memory.total": total >> 20, "memory.used": used >> 20, "power.draw": int(KEYS["power"]) / 1000}
    if "utilization.gpu" in columns:
        values["utilization.gpu"] = round(100 * min(1, (busy_ns() - before) / seconds / 1e9))
    return ", ".join(str(values[column]) for column in columns)


options = sys.argv[1:]
columns = next((one.partition("=")[2].split(",") for one in options if one.startswith("--query-gpu=")), [])
if "-L" in options:
    for index in range(int(KEYS["count"])):
        print("GPU %d: %s (UUID: %s)" % (index, KEYS["name"], KEYS["%d.uuid" % index]))
elif "-q" in options:
    print("Driver Version : %s\nAttached GPUs  : %s" % (KEYS["driver"], KEYS["count"]))
elif "-lms" in options:
    while True:
        print(told(columns, int(options[options.index("-lms") + 1]) / 1000), flush=True)
else:
    print(told(columns, 0.1))
