#!/usr/bin/env python3
"""Programs with known answers, on the GPU of this machine: bare, observed, diagnosed.

gpu_suite.py UNIDLE [--python PYTHON] [--out FOLDER] [--tests FOLDER] [--only NAME ...]

Writes FOLDER/gpu-suite.json and FOLDER/gpu-suite.html, and prints a line for each program and check. Ends
with 1 where something does not hold, and with 0 where everything holds or was skipped by name. Needs no
network."""

import argparse
import html
import json
import os
import re
import subprocess
import sys
import time

import measures

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
PATIENCE_S = 120  # for one program

# What must hold of each, beside that exit code and output are those without us and observation lives to the
# end. `first`: one of these causes leads. `never`: none of these is a warning or worse. `verdict`: one of
# them.
TABLE = {
    "fork": {},
    "capture": {},
    "tf32_api": {"never": ["tf32-off"]},
    "fp16_scaler": {"never": ["precision-fp32"]},
    "two_streams": {"never": ["transfer-blocking", "memory-not-pinned"]},
    "scripted": {},
    "second_device": {},
    "gan": {},
    "gpu_bound": {
        "verdict": ["healthy", "compute-bound"],
        "never": ["transfer-blocking", "memory-not-pinned", "loader-no-workers", "loader-too-few-workers"],
    },
    "fp32_item": {"verdict": ["compute-bound"], "first": ["tf32-off", "precision-fp32"]},
    "healthy_bf16": {"verdict": ["healthy"], "never": ["throttled", "sync-each-step", "precision-fp32"]},
    "launch_bound": {"first": ["launch-bound", "batch-too-small", "optimizer-not-fused"]},
    "loader_bound": {"verdict": ["input-bound"], "first": ["loader-no-workers"]},
    "pageable": {"verdict": ["transfer-bound"], "first": ["memory-not-pinned"]},
    "device_unused": {"first": ["device-unused"]},
}
MEASURES = ["overhead", "superres", "monitor-smi"]


class Suite:
    def __init__(self, unidle, python, out, environment=None):
        self.unidle, self.python, self.out = os.path.abspath(unidle), python, os.path.abspath(out)
        self.environment = dict(os.environ, **(environment or {}))
        self.results = []
        os.makedirs(self.out, exist_ok=True)

    def run(self, *command, patience=PATIENCE_S):
        """(exit code, stdout, stderr, seconds)"""
        begin = time.monotonic()
        try:
            done = subprocess.run(
                command,
                cwd=self.out,
                env=self.environment,
                timeout=patience,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            return done.returncode, done.stdout, done.stderr, time.monotonic() - begin
        except subprocess.TimeoutExpired:
            return "took over %d s" % patience, "", "", time.monotonic() - begin
        except OSError as error:
            return str(error), "", "", 0.0

    def add(self, name, status, **facts):
        """`status`: holds, fails or skipped."""
        self.results.append(dict(facts, name=name, status=status))
        why = facts.get("why")
        print("%-8s %-16s %s" % (status, name, why or facts.get("said", "")), flush=True)

    def has_device(self):
        asks = "import torch; assert torch.cuda.is_available(); print(torch.cuda.get_device_name(0))"
        code, said, _, _ = self.run(self.python, "-c", asks)
        return said.strip() if code == 0 else None

    def program(self, name):
        path = os.path.join(PROGRAMS, name + ".py")
        record = os.path.join(self.out, name + ".rec")
        bare = self.run(self.python, path)
        if bare[0] == 0 and "skipped" in bare[1]:
            self.add(name, "skipped", why=bare[1].strip())
            return
        seen = self.run(self.unidle, "run", "-o", record, "--", self.python, path)
        code, text, error, _ = self.run(self.unidle, "diagnose", record, "--format", "json")
        diagnosis = json.loads(text) if code == 0 else {}
        wrong = [] if code == 0 else ["no diagnosis: " + error.strip()[-300:]]
        if (bare[0], bare[1]) != (seen[0], seen[1]):
            wrong.append("exit %s and %r, bare %s and %r" % (seen[0], seen[1], bare[0], bare[1]))
        wrong += judge(TABLE[name], diagnosis) if diagnosis else []
        self.add(
            name,
            "fails" if wrong else "holds",
            why="; ".join(wrong),
            said=in_a_line(diagnosis),
            bare_s=round(bare[3], 3),
            seen_s=round(seen[3], 3),
            diagnosis=diagnosis,
        )

    def checks(self):
        """What else can be asked of a machine with a GPU."""
        for name, arguments, patience in (
            ("check", ["check", "--format", "json"], 60),
            ("check-speed", ["check", "--speed"], 120),
            ("monitor", ["monitor", "--seconds", "5", "--format", "json"], 30),
        ):
            code, text, error, seconds = self.run(self.unidle, *arguments, patience=patience)
            with open(os.path.join(self.out, name + ".txt"), "w") as file:
                file.write(text + error)
            holds = code in (0, 1)
            why = "" if holds else "exit %s: %s" % (code, error.strip()[-200:])
            self.add(name, "holds" if holds else "fails", why=why, said="%.1f s" % seconds)
        self.monitor_as_smi()

    def tests(self, folder):
        """The whole-program tests that want a real GPU."""
        for name in sorted(os.listdir(folder)):
            if name.endswith("_gpu_test.sh"):
                code, text, error, seconds = self.run("bash", os.path.join(folder, name))
                status = {0: "holds", 77: "skipped"}.get(code, "fails")
                why = "" if code == 0 else (text + error).strip()[-300:] or "exit %s" % code
                self.add(name[:-3], status, why=why, said="%.1f s" % seconds)

    def monitor_as_smi(self):
        """The total memory of each device by monitor and by nvidia-smi; both ask the same driver."""
        query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
        code, text, error, _ = self.run(*query, patience=30)
        if code != 0:
            self.add("nvidia-smi", "skipped", why="nvidia-smi is not there")
            return
        theirs = [int(line) << 20 for line in text.split()]
        code, text, error, _ = self.run(self.unidle, "check", "--format", "json", patience=60)
        ours = [int(found) for found in re.findall(r'"memory_bytes": *(\d+)', text)]
        missing = [one for one in theirs if not any(abs(one - other) < one / 50 for other in ours)]
        self.add(
            "nvidia-smi",
            "fails" if missing else "holds",
            why="not told by check: %s" % missing if missing else "",
        )

    def measure(self, name, root):
        """One of MEASURES; `root` has the folders workloads/ and bench/."""
        if name == "overhead":
            measures.overhead(self)
        elif name == "superres":
            measures.superres(self, root)
        else:
            measures.monitor_beside_smi(self)

    def write(self, device):
        counts = {
            kind: sum(one["status"] == kind for one in self.results) for kind in ("holds", "fails", "skipped")
        }
        whole = {"schema": "unidle.gpu-suite/1", "device": device, "counts": counts, "results": self.results}
        with open(os.path.join(self.out, "gpu-suite.json"), "w") as file:
            json.dump(whole, file, indent=1)
        rows = "".join(
            "<tr><td>%s<td>%s<td>%s<td>%s<td>%s</tr>"
            % tuple(
                html.escape(str(one.get(key, ""))) for key in ("status", "name", "bare_s", "seen_s", "said")
            )
            + ("<tr><td><td colspan=4>%s</tr>" % html.escape(one["why"]) if one.get("why") else "")
            for one in self.results
        )
        with open(os.path.join(self.out, "gpu-suite.html"), "w") as file:
            file.write(
                "<!doctype html><meta charset=utf-8><title>unidle on a GPU</title>"
                "<style>body{font:15px sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:left}</style>"
                "<h1>unidle on %s</h1><p>%s<table><tr><th>status<th>what<th>bare, s<th>observed, s<th>"
                "said%s</table>" % (html.escape(device or "no GPU"), html.escape(json.dumps(counts)), rows)
            )
        return counts["fails"]


def judge(expected, diagnosis):
    """What does not hold, in words."""
    loud = [one["id"] for one in diagnosis.get("findings", []) if one["severity"] != "info"]
    wrong = []
    if "verdict" in expected and diagnosis.get("verdict") not in expected["verdict"]:
        wrong.append("verdict %s, not %s" % (diagnosis.get("verdict"), " or ".join(expected["verdict"])))
    if "first" in expected and (not loud or loud[0] not in expected["first"]):
        wrong.append("first is %s, not %s" % (loud[0] if loud else "nothing", " or ".join(expected["first"])))
    wrong += ["%s is said" % one for one in expected.get("never", []) if one in loud]
    return wrong


def in_a_line(diagnosis):
    if not diagnosis:
        return ""
    findings = ["%s %s" % (one["id"], one["severity"]) for one in diagnosis.get("findings", [])[:3]]
    busy = (diagnosis.get("device") or {}).get("busy")
    return "%s; busy %s; %s" % (diagnosis.get("verdict"), busy, ", ".join(findings))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("unidle")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", default="gpu-suite")
    parser.add_argument("--tests", default=None, metavar="FOLDER")
    parser.add_argument("--root", default=os.path.join(HERE, ".."), help="has workloads/ and bench/")
    parser.add_argument("--only", nargs="*", default=None, metavar="NAME")
    given = parser.parse_args()
    suite = Suite(given.unidle, given.python, given.out)
    device = suite.has_device()
    for name in [*TABLE, *MEASURES] if given.only is None else given.only:
        if device is None:
            suite.add(name, "skipped", why="no GPU that %s can use" % given.python)
        elif name in MEASURES:
            suite.measure(name, os.path.abspath(given.root))
        else:
            suite.program(name)
    if given.only is None:
        suite.checks()
        if given.tests:
            suite.tests(given.tests)
    sys.exit(1 if suite.write(device) else 0)


if __name__ == "__main__":
    main()
