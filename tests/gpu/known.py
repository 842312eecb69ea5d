"""Programs whose answers are known: bare, observed, diagnosed."""

import concurrent.futures
import contextlib
import json
import os
import shutil
import sqlite3

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
LENGTH = "0.5"  # of each program: half of its steps

# What must hold of each, beside that exit code and output are those without us and observation lives to the
# end. `first`: one of these causes leads. `never`: none of these is a warning or worse. `verdict`: one of
# them. `steps`: of the whole program, to the last one. `device_time`: at least this share of a step.
TABLE = {
    "healthy_bf16": {"verdict": ["healthy"], "never": ["throttled", "sync-each-step", "precision-fp32"]},
    "fp32_item": {
        "verdict": ["compute-bound"],
        "first": ["tf32-off", "precision-fp32"],
        "never": ["sync-each-step"],
    },
    "launch_bound": {"verdict": ["launch-bound"], "first": ["launch-bound", "batch-too-small"]},
    "loader_bound": {"verdict": ["input-bound"], "first": ["loader-no-workers"]},
    "pageable": {"verdict": ["transfer-bound"], "first": ["memory-not-pinned"]},
    "gpu_bound": {
        "verdict": ["healthy", "compute-bound"],
        "never": ["transfer-blocking", "memory-not-pinned", "loader-no-workers", "loader-too-few-workers"],
    },
    "fork": {},
    "capture": {},
    "fp16_scaler": {"never": ["precision-fp32"]},
    "two_streams": {"never": ["transfer-blocking", "memory-not-pinned"]},
    "gan": {"steps": 400, "device_time": 0.7},  # of one of its two optimisers it would be half
    "tf32_api": {"never": ["tf32-off"], "steps": 20000},
    "scripted": {},
    "second_device": {},
    "device_unused": {"first": ["device-unused"]},
}


def run_bare(suite, names):
    """{name: (exit code, output)}, several at a time: only what they print matters."""
    with concurrent.futures.ThreadPoolExecutor(max(1, min(4, (os.cpu_count() or 1) // 3))) as pool:
        done = pool.map(
            lambda name: suite.run(suite.python, path_of(name), patience=60, environment=length()), names
        )
        return dict(zip(names, [(code, text) for code, text, _, _ in done]))


def observe(suite, name, bare):
    """One program observed and diagnosed, against what it did without us."""
    if bare is None or isinstance(bare[0], str):
        suite.add(name, "skipped", why="without us it " + ("was not run" if bare is None else bare[0]))
        return
    if bare[0] == 0 and "skipped" in bare[1]:
        suite.add(name, "skipped", why=bare[1].strip())
        return
    record = os.path.join(suite.out, name + ".rec")
    shutil.rmtree(record, ignore_errors=True)
    seen = suite.run(
        suite.unidle, "run", "-o", record, "--", suite.python, path_of(name), environment=length()
    )
    code, text, error, _ = suite.run(suite.unidle, "diagnose", record, "--format", "json")
    diagnosis = json.loads(text) if code == 0 else {}
    wrong = [] if code == 0 else ["no diagnosis: " + error.strip()[-300:]]
    if bare != seen[:2]:
        wrong.append("exit %s and %r, bare %s and %r" % (seen[0], seen[1][-300:], bare[0], bare[1][-300:]))
    wrong += judge(TABLE[name], diagnosis) if diagnosis else []
    wrong += judge_record(TABLE[name], record) if seen[0] == 0 else []
    suite.add(
        name,
        "fails" if wrong else "holds",
        why="; ".join(wrong),
        said=in_a_line(diagnosis),
        seconds=round(seen[3], 1),
        diagnosis=diagnosis,
    )


def path_of(name):
    return os.path.join(PROGRAMS, name + ".py")


def length():
    return {"UNIDLE_PROGRAM_LENGTH": os.environ.get("UNIDLE_PROGRAM_LENGTH", LENGTH)}


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


def judge_record(expected, record):
    """What does not hold of the record itself, in words."""
    path = os.path.join(record, "record.db")
    if not os.path.exists(path):
        return ["no record"]
    with contextlib.closing(sqlite3.connect(path)) as database:

        def one(query):
            return database.execute(query).fetchone()[0]

        wrong = []
        reason = "select json_extract(body, '$.%s') from notes where json_extract(body, '$.type') = 'shim' "
        if database.execute(reason % "reason" + "and json_extract(body, '$.status') = 'off'").fetchall():
            wrong.append("observation ended before the program")
        steps = max(20, int(expected.get("steps", 0) * float(length()["UNIDLE_PROGRAM_LENGTH"])))
        if "steps" in expected and one("select count(*) from steps") != steps:
            wrong.append("%s steps, not %d" % (one("select count(*) from steps"), steps))
        if "device_time" in expected:
            device_s = one(
                "select avg(value) from points join series on series.id = series "
                "where name = 'step.device' and t_ns > (select avg(t_ns) from steps)"
            )
            step_s = one(
                "select avg(duration_ns) * 1e-9 from steps where t_ns > (select avg(t_ns) from steps)"
            )
            if not device_s or device_s < expected["device_time"] * step_s:
                wrong.append("device time %s s of steps of %s s" % (device_s, step_s))
    return wrong


def in_a_line(diagnosis):
    if not diagnosis:
        return ""
    findings = ["%s %s" % (one["id"], one["severity"]) for one in diagnosis.get("findings", [])[:3]]
    busy = (diagnosis.get("device") or {}).get("busy")
    return "%s; busy %s; %s" % (diagnosis.get("verdict"), busy, ", ".join(findings))
