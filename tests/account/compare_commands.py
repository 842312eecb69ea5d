"""Asks every command about every record, and compares their answers.

    python compare_commands.py BIN TESTS TIMELINES

BIN contains unidle, TESTS the test programs, TIMELINES the runs of the rules. Prints differences and then
exits with 1.
"""

import json
import math
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def json_of(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout.lstrip().startswith("{"):
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr}")
    return json.loads(done.stdout)


def four_digits(value):
    """Rounds rates like the diagnosis: more digits would claim a precision that no run has."""
    return None if value is None else float(f"{value:.4g}") if value > 0 else 0


class Records:
    """Records of programs and of the rules' timelines: GPUs, ranks, profiler windows."""

    def __init__(self, tests, timelines, folder):
        with tarfile.open(HERE / "records.tar.xz") as archive:
            for member in archive.getmembers():
                name = member.name.removesuffix(".db")
                (folder / name).mkdir()
                (folder / name / "record.db").write_bytes(archive.extractfile(member).read())
        for timeline in sorted(Path(timelines).glob("*.timeline")):
            subprocess.run(
                [tests / "unidle_timeline", timeline, folder / f"rule-{timeline.stem}"], check=True
            )
        self.all = sorted(folder.iterdir())


class Asked:
    """The commands' answers about one record."""

    def __init__(self, unidle, tests, record, jobs):
        job = jobs / "unidle_7"
        shutil.rmtree(job, ignore_errors=True)
        shutil.copytree(record, job)
        self.name = record.name
        self.diagnosis = json_of(unidle, "diagnose", record, "--format", "json")
        self.side = json_of(unidle, "compare", record, record, "--format", "json")["a"]
        figures = json_of(tests / "unidle_figures", record, jobs, "7")
        self.trial = figures["trial"]
        self.job = figures["slurm"]["diagnosis"]
        page = jobs / "page.html"
        subprocess.run([unidle, "report", record, "-o", page], check=True, capture_output=True)
        self.page = page.read_text()
        self.seconds = {
            run["name"]: run["seconds"]
            for run in json_of(unidle, "runs", "--folder", record.parent, "--format", "json")["runs"]
        }[record.name]

    def rate(self, name):
        found = self.side[name]
        return found and found["value"]

    def differences(self):
        """Returns (figure, one command's answer, another's answer) for all differences."""
        pairs = [
            ("slurm: " + key, self.diagnosis[key], self.job[key])
            for key in ("throughput", "step", "time", "device")
        ]
        pairs += [
            (
                "samples/s",
                four_digits(self.rate("training_samples_per_s")),
                self.diagnosis["throughput"]["samples_per_s"],
            ),
        ]
        if self.trial["taken"]:
            pairs += [
                ("trial: samples/s", self.rate("training_samples_per_s"), self.trial["samples_per_s"]),
                (
                    "trial: total samples/s",
                    self.rate("total_samples_per_s"),
                    self.trial["total_samples_per_s"],
                ),
                ("trial: others' CPUs", self.side["others_cpus"], self.trial["others_cpus"]),
            ]
        phases = {name: round(seconds, 3) for name, seconds in self.side["time_s"].items() if name != "wall"}
        pairs.append(("phases", phases, self.diagnosis["time"]))
        if self.seconds is not None:
            pairs.append(("runs: seconds", round(self.side["time_s"]["wall"], 6), round(self.seconds, 6)))
        step = self.diagnosis["step"]
        if step is not None:  # a part that no step reported is null in one, and 0 in the other
            shares = {name: round(share or 0, 4) for name, share in self.side["step_share"].items()}
            told = {name: share for name, share in step.items() if name != "exchange"}  # part of compute
            pairs.append(("shares of a step", shares, told))
        else:
            pairs.append(("shares of a step", self.side["step_ms"]["whole"], None))
        if self.diagnosis["device"]["kind"] == "cpu" and self.diagnosis["device"]["busy"] is not None:
            pairs.append(("CPUs busy", round(self.side["cpu_busy"], 4), self.diagnosis["device"]["busy"]))
        return [pair for pair in pairs if not same(pair[1], pair[2])] + self.not_on_the_page()

    def not_on_the_page(self):
        """The page names phases in words, as in the comparison: the description of its picture contains
        them."""
        if self.side["time_s"]["wall"] <= 0 or self.rate("training_samples_per_s") is None:
            return []
        told = re.search(r"over the run of [^:]*: start-up ([^,]*), training ([^,]*),", self.page)
        seconds = [self.side["time_s"]["startup"], self.side["time_s"]["train"]]
        said = [] if told is None else [in_seconds(text) for text in told.groups()]
        near = len(said) == 2 and all(
            math.isclose(a, b, rel_tol=0.06, abs_tol=0.06) for a, b in zip(said, seconds)
        )
        return [] if near else [("report: phases", seconds, told and told.groups())]


def in_seconds(text):
    units = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}
    total = 0
    for number, unit in re.findall(r"([\d.]+) ?(ns|us|µs|ms|min|s|h)", text):
        total += float(number) * units[unit]
    return total


def same(one, other):
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


def main():
    unidle = Path(sys.argv[1]) / "unidle"
    tests = Path(sys.argv[2])
    failures = 0
    rated = 0
    crowded = None
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "records"
        jobs = Path(temporary) / "jobs"
        folder.mkdir()
        jobs.mkdir()
        records = Records(tests, sys.argv[3], folder).all
        for record in records:
            asked = Asked(unidle, tests, record, jobs)
            rated += asked.rate("training_samples_per_s") is not None
            if record.name == "crowded":
                crowded = asked.side["others_cpus"]
            for what, one, other in asked.differences():
                failures += 1
                print(f"{record.name}: {what}: {one} and {other}")
    print(f"{len(records)} records, {rated} with a rate, {failures} differences")
    if len(records) < 30 or rated < 30 or not crowded:
        raise SystemExit("too little was compared")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
