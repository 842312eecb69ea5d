"""Sends a diagnosis to an experiment tracker: what `unidle run --tracker` and `unidle report --tracker` do.

unidle runs this folder with the Python interpreter of the observed program, which has the tracker's package.
The arguments are the name of the tracker and a file with a JSON object:

- `name` and `folder` of the record, and `page`, the path of its report
- `diagnosis`: the JSON of `unidle diagnose` with its texts (docs/diagnose.md)
- `exit_code` of the program; null if it is unknown
- `runs`: the runs that the program logged with this tracker, as in the note `tracker` (docs/probe-format.md)

Prints one line for each run: "sent: " and where the diagnosis is, or "not sent: " and why. A tracker is a
module of this folder, NAME_run.py, with a function send(told, known) that returns the place. `known` is one
of the runs, or None for a new one.
"""

import importlib
import json
import sys

from servers import in_words


def figures(told):
    """name -> number, of what trackers plot and compare."""
    diagnosis = told["diagnosis"]
    found = dict(diagnosis["throughput"])
    found.update(diagnosis.get("arithmetic") or {})
    found["device_busy"] = diagnosis["device"]["busy"]
    found.update((f"{phase}_s", seconds) for phase, seconds in diagnosis["time"].items())
    found.update((f"{part}_share", share) for part, share in (diagnosis["step"] or {}).items())
    if diagnosis["findings"]:
        found["speedup_bound"] = diagnosis["findings"][0]["speedup_bound"]
    return {f"unidle/{name}": value for name, value in found.items() if isinstance(value, (int, float))}


def texts(told):
    """name -> text, of what trackers filter by."""
    diagnosis = told["diagnosis"]
    found = {"verdict": diagnosis["verdict"], "answer": diagnosis["answer"], "record": told["folder"]}
    if diagnosis["findings"]:
        found["finding"] = diagnosis["findings"][0]["id"]
    return {f"unidle.{name}": value for name, value in found.items() if value}


def wanted(runs):
    """Where to send it. Of several processes, all but the first often disable their tracker."""
    return [run for run in runs if run.get("mode") != "disabled"] or runs[:1] or [None]


def main():
    tracker, file = sys.argv[1:]
    with open(file, encoding="utf-8") as opened:
        told = json.load(opened)
    told["figures"], told["texts"] = figures(told), texts(told)
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    try:
        sender = importlib.import_module(f"{tracker}_run")
    except Exception as failure:
        sys.exit(in_words(failure))
    for known in wanted(told["runs"]):
        try:
            line = f"sent: {sender.send(told, known)}"
        except Exception as failure:
            line = f"not sent: {in_words(failure)}"
        print(line, flush=True)  # at once: a later run may not end in time


if __name__ == "__main__":
    main()
