"""The engine compared with torch's best on the workloads, by bench/engine_parity.py: started beside other
parts, while both sides compile and warm up, and measured later, one at a time."""

import json
import os

LEAST = 1.0  # relative to torch's best
MODES = ["off", "graph", "fused"]
WARM_S = 140  # variants that need longer are left out
READY_S = 200  # since the begin of waiting for the comparison
NEXT_S = 90  # between two figures


class Parity:
    def __init__(self, suite, root, workloads=(), prepared=None, device="cuda"):
        self.suite, self.talk = suite, None
        program = os.path.join(root, "bench", "engine_parity.py")
        self.command = [suite.python, program, "--device", device, "--trainer", suite.trainer(), "--json"]
        self.command += ["--precisions", "1", "--seconds", "1.0", "--pause", "--naive"]
        self.command += ["--prepared", str(prepared)] if prepared else []
        self.command += ["--warm-seconds", str(WARM_S), "--modes", *MODES, "--", *workloads]

    def begin(self):
        self.talk = self.suite.start("parity", *self.command)

    def measure(self):
        """Adds a result for each workload at once."""
        if self.talk is None:
            self.begin()
        rows, told = [], set()
        try:
            for row in self.rows():
                rows.append(row)
                if "ratio" in row:
                    self.tell(row["workload"], rows)
                    told.add(row["workload"])
        except (RuntimeError, TimeoutError) as failure:
            self.suite.add("parity", "skipped", why=str(failure), lacked_time=False, rows=rows)
        finally:
            self.talk.end()
        for workload in {row["workload"] for row in rows} - told:
            self.tell(workload, rows)
        self.tell_naive(rows)

    def rows(self):
        patience = READY_S
        while True:
            line = self.talk.hear(patience)
            patience = NEXT_S
            if line == "ready":
                self.talk.say("")
            elif line == "over":
                return
            elif line.startswith("{"):
                yield json.loads(line)

    def tell(self, workload, rows):
        mine = [row for row in rows if row.get("workload") == workload]
        ratio = next((row for row in mine if "ratio" in row), None)
        figures = ", ".join(
            "%s %s %s %s" % (row["side"], row["way"], row["precision"], figure(row))
            for row in mine
            if "way" in row
        )
        errors = [row["error"] for row in mine if "error" in row and "way" not in row]
        if ratio is None:
            why = "; ".join(errors) or "no figures of both sides: " + figures
            self.suite.add("parity-" + workload, "skipped", why=why, rows=mine)
            return
        slow = ratio["ratio"] < LEAST
        said = "%.2f times torch's best (%s against %s): %s" % (
            ratio["ratio"],
            ratio["ours"],
            ratio["theirs"],
            figures,
        )
        status = "fails" if slow else "holds"
        self.suite.add("parity-" + workload, status, why=said if slow else "", said=said, rows=mine)

    def tell_naive(self, rows):
        found = {}
        for row in rows:
            if row.get("side") == "unidle" and "samples_per_s" in row:
                kind = "naive" if row["way"] == "naive.yaml" else "tuned"
                one = found.setdefault(row["workload"], {})
                one[kind] = max(one.get(kind, 0), row["samples_per_s"])
        gains = {name: one["tuned"] / one["naive"] for name, one in found.items() if len(one) == 2}
        if gains:
            said = ", ".join("%s %.1f" % pair for pair in gains.items())
            self.suite.add("naive-to-tuned", "holds", said="times as fast: " + said, gains=gains)


def figure(row):
    return "%.3f ms" % row["step_ms"] if "step_ms" in row else "(%s)" % row["error"][:80]
