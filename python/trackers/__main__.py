"""Sends a diagnosis to an experiment tracker: what `unidle run --tracker` and `unidle report --tracker` do.

unidle runs this folder with the Python interpreter of the observed program, which has the tracker's package.
The arguments are the name of the tracker and a file with a JSON object:

- `name` and `folder` of the record, and `page`, the path of its report
- `diagnosis`: the JSON of `unidle diagnose` with its texts (docs/diagnose.md)
- `runs`: the runs that the program logged with this tracker, as in the note `tracker` (docs/probe-format.md)

Prints one line for each run: where its diagnosis is. A tracker is a module of this folder, NAME_run.py,
with a function send(told) that yields these lines.
"""

import importlib
import json
import sys


def figures(told):
    """name -> number, of what trackers plot and compare."""
    diagnosis = told["diagnosis"]
    found = dict(diagnosis["throughput"])
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


def main():
    tracker, file = sys.argv[1:]
    with open(file, encoding="utf-8") as opened:
        told = json.load(opened)
    told["figures"], told["texts"] = figures(told), texts(told)
    try:
        sender = importlib.import_module(f"{tracker}_run")
        for place in sender.send(told):
            print(place)
    except Exception as failure:
        sys.exit(f"{type(failure).__name__}: {failure}")


if __name__ == "__main__":
    main()
