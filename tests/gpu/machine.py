"""Facts about the machine, and the answers of `unidle check` and `unidle monitor`."""

import json
import os
import re

ASKS = """
import json, torch
count = torch.cuda.device_count()
one = torch.cuda.get_device_properties(0)
print(json.dumps({"device": one.name, "devices": count, "capability": "%d.%d" % (one.major, one.minor),
                  "torch": torch.__version__, "cuda": torch.version.cuda}))
"""


def facts(suite):
    """Facts about the GPU that torch can use; {} without one."""
    code, said, _, _ = suite.run(suite.python, "-c", ASKS, patience=60)
    found = json.loads(said.strip().splitlines()[-1]) if code == 0 and said.strip() else {}
    if found:
        code, said, _, _ = suite.run("nvidia-smi", "-q", patience=30)
        keep(suite, "nvidia-smi.txt", said if code == 0 else "nvidia-smi: %s\n" % code)
        driver = re.search(r"Driver Version *: *(\S+)", said)
        found["driver"] = driver.group(1) if driver else None
    return dict(found, cpus=os.cpu_count())


def answers(suite):
    """`check` and `monitor` end in time, with a valid exit code, and read this driver."""
    for name, arguments, patience in (
        ("check", ["check", "--format", "json"], 60),
        ("monitor", ["monitor", "--seconds", "3", "--format", "json"], 30),
    ):
        code, text, error, seconds = suite.run(suite.unidle, *arguments, patience=patience)
        keep(suite, name + ".txt", text + error)
        gpus = bool(re.search(r'"gpus": *\[\s*\{', text))
        wrong = (
            "exit %s: %s" % (code, error.strip()[-200:])
            if code not in (0, 1)
            else ("" if gpus else "no device in it")
        )
        suite.add(name, "fails" if wrong else "holds", why=wrong, seconds=round(seconds, 1))


def check_beside_smi(suite):
    """The total memory of each device from check and from nvidia-smi; both query the same driver."""
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    code, text, error, _ = suite.run(*query, patience=30)
    if code != 0:
        suite.add("check-smi", "skipped", why="nvidia-smi is not there")
        return
    theirs = [int(line) << 20 for line in text.split() if line.isdigit()]
    ours = [gpu.get("memory_bytes") or 0 for gpu in checked(suite)]
    missing = [one for one in theirs if not any(abs(one - other) < one / 50 for other in ours)]
    why = "not told by check: %s" % missing if missing else ""
    suite.add("check-smi", "fails" if missing else "holds", why=why, said="%s bytes" % ours)


def mig_beside_smi(suite):
    """The slices of devices in MIG mode, from check and from nvidia-smi."""
    code, text, _, _ = suite.run("nvidia-smi", "-L", patience=30)
    if code != 0:
        suite.add("mig", "skipped", why="nvidia-smi is not there")
        return
    theirs = sorted(re.findall(r"UUID: (MIG-[^)\s]+)", text))
    if not theirs:
        suite.add("mig", "skipped", why="no device has slices of MIG")
        return
    ours = sorted(one["uuid"] for gpu in checked(suite) for one in gpu.get("mig_devices") or [])
    why = "" if ours == theirs else "check tells %s, nvidia-smi %s" % (ours, theirs)
    suite.add("mig", "fails" if why else "holds", why=why, said="%d slices" % len(ours))


def checked(suite):
    code, text, _, _ = suite.run(suite.unidle, "check", "--format", "json", patience=60)
    return (json.loads(text).get("gpus") or []) if code in (0, 1) else []


def run_test(suite, path):
    """Runs a whole-program test that needs a real GPU."""
    name = os.path.basename(path)[: -len(".sh")]
    code, text, error, seconds = suite.run("bash", path)
    status = {0: "holds", 77: "skipped"}.get(code, "fails")
    why = "" if code == 0 else (text + error).strip()[-600:] or "exit %s" % code
    said = " | ".join(line for line in text.splitlines() if line != "all good")
    suite.add(name, status, why=why, said=said[-600:] if code == 0 else "", seconds=round(seconds, 1))


def keep(suite, name, text):
    with open(suite.record(name), "w") as file:
        file.write(text)
