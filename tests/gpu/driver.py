"""The driver's own answers: the cost of readings, what it allows, and what it reports about a process."""

import json
import os

import known

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_MS = 20  # for all readings that the monitor makes at once, a tenth of its interval


def told_by(suite, program):
    code, text, error, _ = suite.run(suite.python, os.path.join(HERE, "programs", program + ".py"))
    if code != 0:
        raise RuntimeError("%s: exit %s: %s" % (program, code, known.last_line(error)))
    return json.loads(text.strip().splitlines()[-1])


def ceilings(suite):
    """The engine's own figures for the card, from `check --speed`, beside torch's in Python."""
    code, text, error, seconds = suite.run(suite.trainer(), "speed", "--format", "json")
    devices = json.loads(text)["devices"] if code == 0 else []
    ours = next((one for one in devices if one["device"].startswith("cuda")), None)
    if ours is None:
        why = "exit %s, no figures of a GPU: %s" % (code, known.last_line(error))
        suite.add("speed", "fails", why=why, seconds=round(seconds, 1))
        return
    theirs = told_by(suite, "ceilings")
    pairs = {
        "bf16 TFLOP/s": (ours["matmul_tflops"]["bf16"], theirs["bf16_tflops"], 1),
        "pinned GB/s": (ours["copy_pinned_bytes_s"], theirs["copy_pinned_bytes_s"], 1e9),
        "pageable GB/s": (ours["copy_pageable_bytes_s"], theirs["copy_pageable_bytes_s"], 1e9),
        "launch us": (ours["launch_s"], theirs["launch_s"], 1e-6),
        "device copy GB/s": (None, theirs["device_copy_bytes_s"], 1e9),
    }
    # A launch from Python costs more, and pageable copies depend on the host's memory.
    mine, other, _ = pairs["bf16 TFLOP/s"]
    far = mine is None or abs(mine - other) > 0.2 * other
    suite.add(
        "speed",
        "fails" if far else "holds",
        why="products are far from torch's own: %s, %s TFLOP/s" % (mine, other) if far else "",
        said="; ".join(
            "%s %s, by torch %.4g" % (name, "-" if one is None else "%.4g" % (one / unit), two / unit)
            for name, (one, two, unit) in pairs.items()
        ),
        ours=ours,
        theirs=theirs,
        seconds=round(seconds, 1),
    )


def readings(suite):
    told = told_by(suite, "driver")
    together = sum(
        one["ms"] for name, one in told["readings"].items() if name != "pcie"
    )  # that measures 20 ms
    slow = together > MOST_MS
    suite.add(
        "nvml-time",
        "fails" if slow else "holds",
        why="all readings but pcie take %.1f ms" % together if slow else "",
        said="%.2f ms for all but pcie; " % together
        + ", ".join(
            "%s %.3f ms%s" % (name, one["ms"], "" if one["code"] == 0 else " (code %s)" % one["code"])
            for name, one in told["readings"].items()
        ),
        told=told["readings"],
    )
    gpm = told["gpm"]
    sample = gpm.get("sample") or {}
    allowed = gpm["supported"] and sample.get("code") == 0
    suite.add(
        "gpm",
        "holds" if allowed else "skipped",
        why="" if allowed else "not here: %s" % json.dumps(gpm),
        said="a sample takes %.3f ms" % sample.get("ms", 0),
        told=gpm,
    )
    process = told["process"]
    suite.add(
        "process-numbers",
        "holds" if process["own_bytes"] is not None else "skipped",
        why=""
        if process["own_bytes"] is not None
        else "the driver tells %s of %s" % (process["pids"], process),
        said="own %s bytes, torch has reserved %s, the device has %s in use"
        % (process["own_bytes"], process["reserved_bytes"], process["used_bytes"]),
        told=process,
    )
