"""Our readings compared with others': the busy time of a loop that waits for its loader with PyTorch's own
profiler, and `unidle monitor` with nvidia-smi. Each function takes the suite and adds one result."""

import concurrent.futures
import contextlib
import json
import os
import statistics
import time

import known

HERE = os.path.dirname(os.path.abspath(__file__))
WATCHED_S = 5
MOST_POINTS = 0.03  # between our share of device time and the profiler's
# Absolute difference; relative to theirs; relative to theirs.
CLOSE = {"utilisation": 0.15, "memory_bytes": 0.05, "power_w": 0.15}


def idle_beside_profiler(suite):
    """The device's busy share in the diagnosis of loader_bound, and in PyTorch's own profiler for the same
    loop."""
    told = next((one.get("diagnosis") for one in suite.results if one["name"] == "loader_bound"), None)
    ours = ((told or {}).get("device") or {}).get("busy")
    if ours is None:
        suite.add("loader-idle", "skipped", why="loader_bound was not diagnosed")
        return
    code, text, error, _ = suite.run(
        suite.python,
        os.path.join(HERE, "programs", "loader_idle.py"),
        environment=known.length(),
    )
    if code != 0 or "skipped" in text:
        why = text.strip() if code == 0 else "exit %s: %s" % (code, known.last_line(error))
        suite.add("loader-idle", "skipped" if code == 0 else "fails", why=why)
        return
    theirs = float(text.split()[-1])
    far = abs(ours - theirs) > MOST_POINTS
    suite.add(
        "loader-idle",
        "fails" if far else "holds",
        why="more than %.0f points from the profiler" % (100 * MOST_POINTS) if far else "",
        said="busy %.4f, by the profiler %.4f" % (ours, theirs),
    )


def monitor_beside_smi(suite):
    """The first device's utilisation, memory and power while a program computes, from both at the same
    time."""
    columns = "utilization.gpu,memory.used,power.draw"
    watch = ["nvidia-smi", "-i", "0", "--query-gpu=" + columns, "--format=csv,noheader,nounits"]
    if suite.run(*watch, patience=30)[0] != 0:
        suite.add("monitor-smi", "skipped", why="nvidia-smi is not there")
        return
    begun = os.path.join(suite.work, "busy-has-begun")
    if os.path.exists(begun):
        os.remove(begun)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        load = pool.submit(suite.run, suite.python, os.path.join(HERE, "programs", "busy.py"), "60", begun)
        while not os.path.exists(begun) and not load.done():
            time.sleep(0.05)
        smi = pool.submit(suite.run, *watch, "-lms", "200", patience=WATCHED_S)  # it runs until it is ended
        code, text, error, _ = suite.run(
            suite.unidle, "monitor", "--seconds", str(WATCHED_S), "--format", "json", patience=60
        )
        theirs = means(smi.result()[1])
        with contextlib.suppress(FileNotFoundError):
            os.remove(begun)  # ends the load, which was there for both to the end
        loaded = load.result()
    ours = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if loaded[0] != 0 or code != 0 or not ours or not ours[-1].get("gpus"):
        why = "busy.py: exit %s; monitor: exit %s: %s" % (
            loaded[0],
            code,
            known.last_line(loaded[2] or error),
        )
        suite.add("monitor-smi", "fails", why=why)
        return
    compare(suite, ours[-1]["gpus"][0], theirs)


def means(text):
    """Means of nvidia-smi's lines: utilisation 0..1, bytes, W; None if it reports none."""
    rows = [line.split(",") for line in text.splitlines()]
    found = {}
    for at, (name, scale) in enumerate((("utilisation", 0.01), ("memory_bytes", 1 << 20), ("power_w", 1))):
        values = [number(row[at]) for row in rows if len(row) == 3]
        values = [value for value in values if value is not None]
        found[name] = statistics.mean(values) * scale if values else None
    return found


def compare(suite, ours, theirs):
    wrong, said = [], []
    for name, allowed in CLOSE.items():
        mine, other = (ours.get(name) or {}).get("mean"), theirs[name]
        if mine is None or other is None:
            said.append("%s: not told by %s" % (name, "us" if mine is None else "nvidia-smi"))
            continue
        said.append("%s %.4g, nvidia-smi %.4g" % (name, mine, other))
        if abs(mine - other) > allowed * (1 if name == "utilisation" else other):
            wrong.append(name)
    suite.add(
        "monitor-smi",
        "fails" if wrong else "holds",
        why="far from nvidia-smi: " + ", ".join(wrong) if wrong else "",
        said="; ".join(said),
    )


def number(text):
    try:
        return float(text)
    except ValueError:
        return None  # [N/A]
