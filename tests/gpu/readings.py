"""The device utilisation from each source, side by side: for a loop of launches, for one that waits for its
loader, and for a full one. CUPTI's union of all kernels is the closest to the truth."""

import contextlib
import json
import os
import shutil
import sqlite3

import known

LOOPS = ("launch_bound", "loader_bound", "healthy_bf16")
LENGTH = 1.0  # of the programs: readings come four times a second
FAR = 0.15  # between a diagnosis and CUPTI's union, unless measuring delayed the device


def side_by_side(suite):
    for name in LOOPS:
        one(suite, name)


def one(suite, name):
    told = "readings-" + name
    record = suite.record(told + ".rec")
    shutil.rmtree(record, ignore_errors=True)
    command = [suite.unidle, "run", "-o", record, "--kernels", "--", suite.python, known.path_of(name)]
    code, _, error, seconds = suite.run(*command, environment=known.length(LENGTH))
    if code != 0:
        lacked = isinstance(code, str)
        why = "exit %s: %s" % (code, known.last_line(error))
        suite.add(told, "skipped" if lacked else "fails", why=why, lacked_time=lacked)
        return
    code, text, error, _ = suite.run(suite.unidle, "diagnose", record, "--format", "json")
    diagnosis = json.loads(text) if code == 0 else {}
    found = of_record(os.path.join(record, "record.db"))
    found["diagnosis"] = (diagnosis.get("device") or {}).get("busy")
    far = [
        "%s %.2f, CUPTI %.2f" % (key, found[key], found["cupti"])
        for key in ("diagnosis",)
        if found["cupti"] is not None and found[key] is not None and abs(found[key] - found["cupti"]) > FAR
    ]
    suite.add(
        told,
        "fails" if far else "holds",
        why="far from CUPTI: " + "; ".join(far) if far else "",
        said=", ".join("%s %s" % (key, shown(value)) for key, value in found.items()),
        readings=found,
        verdict=diagnosis.get("verdict"),
        seconds=round(seconds, 1),
    )


def shown(value):
    return "-" if value is None else "%.3f" % value


def of_record(path):
    """Means over the second half of the steps, after warm-up."""
    with contextlib.closing(sqlite3.connect(path)) as database:

        def query(text, *values):
            return database.execute(text, values).fetchone()

        begin, end = query("select (min(t_ns) + max(t_ns)) / 2, max(t_ns + duration_ns) from steps")
        if begin is None:
            return dict.fromkeys(("nvml", "sm", "tensor", "cupti", "span", "kept_up", "step_ms"))

        def mean(name):
            return query(
                "select avg(value) from points join series on series.id = series "
                "where name = ? and t_ns between ? and ?",
                name,
                begin,
                end,
            )[0]

        step_s = query("select avg(duration_ns) * 1e-9 from steps where t_ns >= ?", begin)[0]
        span_s = mean("step.device")
        kept = query(
            "select json_extract(body, '$.kept_up') * 1.0 / nullif(json_extract(body, '$.looked_at'), 0) "
            "from notes where json_extract(body, '$.type') = 'device' "
            "and json_extract(body, '$.looked_at') is not null order by t_ns desc limit 1"
        )
        return {
            "nvml": mean("gpu.utilisation"),
            "sm": mean("gpu.sm_activity"),
            "tensor": mean("gpu.tensor_activity"),
            "cupti": mean("cupti.busy"),
            "span": span_s / step_s if span_s and step_s else None,
            "kept_up": kept[0] if kept else None,
            "step_ms": step_s and 1e3 * step_s,
        }
