"""Programs whose answers are known: bare, observed, diagnosed."""

import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import sqlite3

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
LENGTH = 0.5  # for each program: half of its steps
PATIENCE = 3  # times the duration without us, before a run counts as hanging

# What must hold for each, besides that exit code and output are those without us and observation lasts to the
# end. `first`: one of these causes leads. `never`: none of these is a warning or worse. `verdict`: one of
# them. `steps`: the number in the whole program. `device_time`: at least this share of a step. `last_device`:
# the model is there, and this run has memory on no other.
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
    "pinned_async": {
        "verdict": ["transfer-bound"],
        "first": ["transfer-not-overlapped"],
        "never": ["launch-bound", "compile-off"],
    },
    "gpu_bound": {
        "verdict": ["healthy", "compute-bound"],
        "never": ["transfer-blocking", "memory-not-pinned", "loader-no-workers", "loader-too-few-workers"],
    },
    "frozen_encoder": {
        "verdict": ["healthy", "compute-bound"],
        "never": ["loader-no-workers", "loader-too-few-workers", "launch-bound", "compile-off"],
        "device_time": 0.9,  # for the trained head alone it would be a hundredth
    },
    "fork": {},
    "capture": {},
    "fp16_scaler": {"never": ["precision-fp32"]},
    "two_streams": {"never": ["transfer-blocking", "memory-not-pinned"]},
    "gan": {"steps": 400, "device_time": 0.7},  # for one of its two optimisers it would be half
    "tf32_api": {"never": ["tf32-off"], "steps": 20000},
    "scripted": {},
    "second_device": {"last_device": True, "device_time": 0},
    "device_unused": {"first": ["device-unused"]},
}


def run_bare(suite, names):
    """{name: (exit code, output, last line of stderr, seconds)}, several in parallel: only their output
    matters."""
    with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        done = pool.map(
            lambda name: suite.run(suite.python, path_of(name), patience=60, environment=length()), names
        )
        return {
            name: (code, text, last_line(error), seconds)
            for name, (code, text, error, seconds) in zip(names, done)
        }


def observe(suite, name, bare):
    """Observes and diagnoses one program, and compares it with the bare run, which is made now if there was
    no time for it before."""
    if bare is None or isinstance(bare[0], str):
        bare = run_bare(suite, [name])[name]
    why = why_not(bare)
    if why:
        suite.add(name, "skipped", why=why, lacked_time=isinstance(bare[0], str))
        return
    record = suite.record(name + ".rec")
    shutil.rmtree(record, ignore_errors=True)
    seen = suite.run(
        suite.unidle, "run", "-o", record, "--", suite.python, path_of(name), environment=length()
    )
    if isinstance(seen[0], str) and seen[3] < PATIENCE * bare[3]:
        why = "no time left: it %s, %.0f s without us" % (seen[0], bare[3])
        suite.add(name, "skipped", why=why, lacked_time=True)
        return
    code, text, error, _ = suite.run(suite.unidle, "diagnose", record, "--format", "json")
    diagnosis = json.loads(text) if code == 0 else {}
    wrong = [] if code == 0 else ["no diagnosis: " + error.strip()[-300:]]
    if bare[:2] != seen[:2]:
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


def why_not(bare):
    """Why a program that fails without us proves nothing; empty if it succeeded."""
    code, text, error, _ = bare
    if isinstance(code, str):
        return "without us it " + code
    if code != 0:
        return "without us it ends with %s: %s" % (code, error)
    return text.strip() if "skipped" in text else ""


def last_line(text):
    """The last line of a program's messages that names an error, or else the last one."""
    lines = text.strip().splitlines() or ["no word"]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines)[-1][:300]


def path_of(name):
    return os.path.join(PROGRAMS, name + ".py")


def length(usual=LENGTH):
    return {"UNIDLE_PROGRAM_LENGTH": os.environ.get("UNIDLE_PROGRAM_LENGTH", str(usual))}


def judge(expected, diagnosis):
    """The failed expectations, in words."""
    loud = [one["id"] for one in diagnosis.get("findings", []) if one["severity"] != "info"]
    wrong = []
    if "verdict" in expected and diagnosis.get("verdict") not in expected["verdict"]:
        wrong.append("verdict %s, not %s" % (diagnosis.get("verdict"), " or ".join(expected["verdict"])))
    if "first" in expected and (not loud or loud[0] not in expected["first"]):
        wrong.append("first is %s, not %s" % (loud[0] if loud else "nothing", " or ".join(expected["first"])))
    wrong += ["%s is said" % one for one in expected.get("never", []) if one in loud]
    return wrong


def judge_record(expected, record):
    """The failed expectations about the record itself, in words."""
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
        if expected.get("last_device"):
            wrong += judge_device(database)
    return wrong


def judge_device(database):
    """For a model on the last of several devices."""
    used = [
        subject
        for (subject,) in database.execute(
            "select subject from series join points on series.id = series where name = 'gpu.own_memory' "
            "group by subject having max(value) > 0"
        )
    ]
    wrong = [] if len(used) <= 1 else ["it has memory on " + ", ".join(used)]
    where = database.execute(
        "select value from settings where knob = 'device' and source = 'effective'"
    ).fetchone()
    if where is None or where[0] in ("cpu", "cuda:0"):
        wrong.append("the model is on %s" % (where and where[0]))
    return wrong


def in_a_line(diagnosis):
    if not diagnosis:
        return ""
    findings = ["%s %s" % (one["id"], one["severity"]) for one in diagnosis.get("findings", [])[:3]]
    busy = (diagnosis.get("device") or {}).get("busy")
    return "%s; busy %s; %s" % (diagnosis.get("verdict"), busy, ", ".join(findings))
