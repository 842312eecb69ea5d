"""How long NVML takes for each reading while this program computes, whether GPM is allowed, and what the
driver reports about this process. Prints JSON; for a refused reading, the driver's error code."""

import ctypes
import json
import os
import statistics
import time

import torch

READINGS = 50
library = ctypes.CDLL(os.environ.get("UNIDLE_NVML_LIBRARY") or "libnvidia-ml.so.1")
library.nvmlInit_v2()
device = ctypes.c_void_p()
library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))


class Process(ctypes.Structure):  # nvmlProcessInfo_t
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class GpmSupport(ctypes.Structure):  # nvmlGpmSupport_t
    _fields_ = [("version", ctypes.c_uint), ("supported", ctypes.c_uint)]


def timed(call):
    """(the last code, milliseconds of a call: median and maximum)."""
    found = []
    for _ in range(READINGS):
        begin = time.perf_counter()
        code = call()
        found.append(1e3 * (time.perf_counter() - begin))
        work()
    return {"code": code, "ms": statistics.median(found), "most_ms": max(found)}


def work():
    for _ in range(20):
        torch.mm(a, a, out=b)


def of(name, *more):
    """The call, if the driver has it."""
    function = getattr(library, name, None)
    return (lambda: function(device, *more)) if function else (lambda: "missing")


def processes():
    count, entries = ctypes.c_uint(64), (Process * 64)()
    code = getattr(library, "nvmlDeviceGetComputeRunningProcesses_v3", lambda *_: "missing")(
        device, ctypes.byref(count), entries
    )
    return code, entries[: count.value] if code == 0 else []


def gpm():
    """Whether samples may be taken, and how long one takes."""
    support = GpmSupport(1, 0)
    told = {"code": of("nvmlGpmQueryDeviceSupport", ctypes.byref(support))(), "supported": support.supported}
    sample = ctypes.c_void_p()
    allocate = getattr(library, "nvmlGpmSampleAlloc", None)
    if allocate and allocate(ctypes.byref(sample)) == 0:
        told["sample"] = timed(of("nvmlGpmSampleGet", sample))
    return told


a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
b = torch.empty_like(a)
work()
torch.cuda.synchronize()
buffer, pair = (ctypes.c_char * 256)(), (ctypes.c_uint * 2)()
number, long = ctypes.c_uint(), ctypes.c_ulonglong()
readings = {
    "utilisation": of("nvmlDeviceGetUtilizationRates", ctypes.byref(pair)),
    "memory": of("nvmlDeviceGetMemoryInfo", ctypes.byref(buffer)),
    "power": of("nvmlDeviceGetPowerUsage", ctypes.byref(number)),
    "energy": of("nvmlDeviceGetTotalEnergyConsumption", ctypes.byref(long)),
    "temperature": of("nvmlDeviceGetTemperature", 0, ctypes.byref(number)),
    "clock": of("nvmlDeviceGetClockInfo", 1, ctypes.byref(number)),
    "throttle": of("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.byref(long)),
    "pcie": of("nvmlDeviceGetPcieThroughput", 1, ctypes.byref(number)),
    "processes": lambda: processes()[0],
}
told = {name: timed(call) for name, call in readings.items()}
torch.cuda.synchronize()
code, entries = processes()
mine = [one.memory for one in entries if one.pid == os.getpid()]
free, total = torch.cuda.mem_get_info()
print(
    json.dumps(
        {
            "readings": told,
            "gpm": gpm(),
            "process": {
                "code": code,
                "count": len(entries),
                "pids": [one.pid for one in entries],
                "own_pid": os.getpid(),
                "own_bytes": mine[0] if mine else None,
                "reserved_bytes": torch.cuda.memory_reserved(),
                "used_bytes": total - free,
            },
        }
    )
)
