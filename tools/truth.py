#!/usr/bin/env python3
"""Measures how often the diagnosis is right, on timelines and on real runs with a known cause.

    tools/truth.py timelines [--build build]
    tools/truth.py cases FOLDER [--only NAME ...] [--repeat N] [--build build] [--keep FOLDER] [--bare]

Timelines are synthetic (src/unidle/diagnose/testing/timelines). A case is a folder with a training script,
train.py, and expect.json, which lists the expected findings; each is copied without expect.json, run
under `unidle run` and diagnosed. FOLDER is $UNIDLE_SHARED/cases by default. Exit code 1 if anything was
wrong.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MACHINE = {"device-shared", "throttled", "link-degraded"}  # findings about the machine, not the program
LIMIT_S = 120


def judge(expect, document, exit_code, diagnose_code):
    """The faults of a diagnosis, one line each."""
    wrong = []
    findings = document["findings"]
    ids = [f["id"] for f in findings]
    serious = [f["id"] for f in findings if f["severity"] != "info"]
    if exit_code != 0:
        wrong.append("unidle run gave %d" % exit_code)
    failed = document["verdict"] == "failed"
    if diagnose_code != (1 if failed else 0):
        wrong.append("unidle diagnose gave %d" % diagnose_code)
    if document["verdict"] not in expect["verdict"]:
        wrong.append("verdict %s, expected %s" % (document["verdict"], " or ".join(expect["verdict"])))
    if document["outcome"] not in expect.get("outcome", ["completed"]):
        wrong.append("outcome %s" % document["outcome"])
    wrong += ["%s is missing" % i for i in expect["must"] if i not in ids]
    if expect["top"] and (not ids or ids[0] not in expect["top"]):
        wrong.append("%s leads, expected %s" % (ids[0] if ids else "nothing", " or ".join(expect["top"])))
    wrong += ["false alarm: %s" % i for i in serious if i in expect["must_not"]]
    if expect["verdict"] == ["healthy"]:
        wrong += ["not healthy: %s" % i for i in serious if i not in MACHINE and i not in expect["must_not"]]
    for i, texts in expect.get("mentions", {}).items():
        said = json.dumps([f for f in findings if f["id"] == i])
        wrong += ["%s does not mention %s" % (i, t) for t in texts if t not in said]
    return wrong


def share_of_cause(expect, document):
    for finding in document["findings"]:
        if finding["id"] in (expect["top"] or []):
            return finding["share"]
    return None


def run_in_time(command, folder, environment):
    """The finished process, or None if LIMIT_S was not enough: then it and its descendants have been
    killed."""
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        try:
            out, err = child.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            child.terminate()  # unidle passes it on
            child.communicate()
            return None
    return subprocess.CompletedProcess(command, child.returncode, out, err)


def run_case(case, args):
    """One run; returns (faults, the document or None, seconds under unidle, seconds bare)."""
    expect = json.loads((case / "expect.json").read_text())
    unidle = str((ROOT / args.build / "bin" / "unidle").resolve())
    environment = dict(os.environ, PATH=str(ROOT / ".venv/bin") + os.pathsep + os.environ["PATH"])
    with tempfile.TemporaryDirectory(prefix="case-") as folder:
        work = pathlib.Path(folder) / case.name
        shutil.copytree(case, work, ignore=shutil.ignore_patterns("expect.json", "__pycache__"))
        record = (
            pathlib.Path(args.keep).resolve() / case.name if args.keep else pathlib.Path(folder) / "record"
        )
        shutil.rmtree(record, ignore_errors=True)
        bare = None
        if args.bare:
            start = time.monotonic()
            subprocess.run(
                ["python", "train.py"], cwd=work, env=environment, capture_output=True, check=False
            )
            bare = time.monotonic() - start
        start = time.monotonic()
        ran = run_in_time([unidle, "run", "-o", str(record), "--", "python", "train.py"], work, environment)
        if ran is None:
            return ["more than %d s" % LIMIT_S], None, LIMIT_S, bare
        seconds = time.monotonic() - start
        (record / "stderr.txt").write_bytes(ran.stderr)
        said = subprocess.run(
            [unidle, "diagnose", str(record), "--format", "json"],
            cwd=work,
            env=environment,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        try:
            document = json.loads(said.stdout)
        except ValueError:
            return (
                ["no JSON document: " + (said.stdout + said.stderr).decode(errors="replace")[:300]],
                None,
                seconds,
                bare,
            )
        return judge(expect, document, ran.returncode, said.returncode), document, seconds, bare


def cases(args):
    folder = pathlib.Path(args.folder or os.path.join(os.environ.get("UNIDLE_SHARED", ""), "cases"))
    found = sorted(p.parent for p in folder.glob("*/expect.json"))
    found = [c for c in found if not args.only or any(c.name.startswith(o) for o in args.only)]
    if not found:
        sys.exit("truth: no cases in %s" % folder)
    right = alarms = tops = with_top = 0
    total = args.repeat * len(found)
    for _turn in range(args.repeat):
        for case in found:
            expect = json.loads((case / "expect.json").read_text())
            wrong, document, seconds, bare = run_case(case, args)
            right += not wrong
            alarms += any("false alarm" in w or "not healthy" in w for w in wrong)
            if expect["top"]:
                with_top += 1
                tops += bool(
                    document and document["findings"] and document["findings"][0]["id"] in expect["top"]
                )
            line = "%-20s %5.1f s" % (case.name, seconds) + ("" if bare is None else " (bare %.1f s)" % bare)
            if document:
                line += "  %-16s" % document["verdict"]
                line += ", ".join(
                    "%s %s%s" % (f["id"], f["severity"], "" if f["share"] is None else " %.2f" % f["share"])
                    for f in document["findings"][:5]
                )
                share, measured = share_of_cause(expect, document), expect.get("measured", {}).get("share")
                if share is not None and measured is not None:
                    line += "  [share %.2f, measured %.2f]" % (share, measured)
            print(line, flush=True)
            for w in wrong:
                print("    WRONG: " + w, flush=True)
    print(
        "cases right: %d of %d; the cause leads (top-1): %d of %d; false alarms: %d"
        % (right, total, tops, with_top, alarms)
    )
    return 0 if right == total else 1


def timelines(args):
    return subprocess.run(
        [
            str(ROOT / args.build / "tests" / "unidle_truth"),
            str(ROOT / "src/unidle/diagnose/testing/timelines"),
        ],
        check=False,
    ).returncode


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("timelines", "cases"):
        command = commands.add_parser(name)
        command.add_argument("--build", default="build", help="build folder, relative to the repository")
    command.add_argument("folder", nargs="?")
    command.add_argument("--only", nargs="*", help="beginnings of names")
    command.add_argument("--repeat", type=int, default=1)
    command.add_argument("--keep", help="folder that keeps the records")
    command.add_argument("--bare", action="store_true", help="also time the script without unidle")
    args = parser.parse_args()
    sys.exit(timelines(args) if args.command == "timelines" else cases(args))


if __name__ == "__main__":
    main()
