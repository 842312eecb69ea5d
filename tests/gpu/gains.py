"""The gain of `unidle optimize` within minutes: on the engine's naive superres, and on the same in Python."""

import json
import os
import shutil

import known


def engine(suite, root, budget, device="cuda"):
    data = pictures(suite, root)
    if data:
        config = os.path.join(suite.work, "naive.yaml")
        shutil.copy(os.path.join(root, "workloads", "superres", "naive.yaml"), config)
        with open(config, "a") as file:
            file.write("\ndata.folder: %s\ndevice: %s\n" % (data, device))
        search(suite, "optimize-engine", budget, config)


def program(suite, root, budget, device="cuda"):
    data = pictures(suite, root)
    if data:
        peer = os.path.join(root, "bench", "peers", "superres.py")
        options = ["--mode", "naive", "--data", data, "--device", device, "--samples", "20000"]
        search(suite, "optimize-program", budget, "--", suite.python, peer, *options)


def pictures(suite, root):
    """Returns their folder; empty, with a message, if they cannot be made."""
    data = os.path.join(suite.work, "superres-data")
    if not os.path.isdir(data):
        config = os.path.join(root, "workloads", "superres", "naive.yaml")
        command = [suite.unidle, "train", config, "data.folder=" + data, "device=cpu", "--prepare"]
        code, _, error, _ = suite.run(*command)
        if code != 0:
            suite.add("optimize", "skipped", why="no pictures: exit %s: %s" % (code, known.last_line(error)))
            return ""
    return data


def search(suite, name, budget, *what):
    options = ["--benchmark", "--yes", "--budget", budget, "--format", "json"]
    command = [suite.unidle, "optimize", *options, *what]
    code, text, error, seconds = suite.run(*command)
    if code != 0:
        lacked = isinstance(code, str)
        why = "exit %s: %s" % (code, known.last_line(error))
        suite.add(name, "skipped" if lacked else "fails", why=why, lacked_time=lacked)
        return
    told = json.loads(text)
    changes = ["%s=%s" % (one["knob"], one["to"]) for one in told.get("changes", [])]
    suite.add(
        name,
        "holds",
        said="%s by %s in %.0f s" % (gain_of(told), ", ".join(changes) or "no change", seconds),
        optimized=told,
    )


def gain_of(told):
    ratio = (told.get("verification") or {}).get("ratio")
    if isinstance(ratio, (int, float)):
        return "verified %.2f times as fast" % ratio
    return "not verified: %s" % json.dumps(told.get("conclusion"))[:200]
