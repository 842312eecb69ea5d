"""The basis of the suite's parts: commands that end in time, and results that are on disk at once."""

import contextlib
import html
import json
import os
import queue
import signal
import subprocess
import tarfile
import tempfile
import threading
import time

PATIENCE_S = 120  # for one command
BUDGET_S = 400  # for the whole suite
ARCHIVE = "gpu-suite-records.tar.gz"
MOST_ARCHIVED = 15 << 20  # bytes of the archive
MOST_OF_ONE = 64 << 20  # bytes of a file in it, before compression
ARCHIVED_EACH_S = 30
LEAST_S = 5  # a part with less time is not started
NOT_BEGUN = "was not begun: no time left"


class Suite:
    """Results of parts. `out` gets the results, `work` intermediate files; `budget_s`: for all parts
    together. run() and add() may be called from several threads."""

    def __init__(self, unidle, python, out, work, environment=None, budget_s=BUDGET_S):
        self.unidle, self.python = os.path.abspath(unidle), python
        self.out, self.work = os.path.abspath(out), os.path.abspath(work)
        self.archived, self.records = time.monotonic(), []
        self.environment = dict(os.environ, UNIDLE_PYTHON=python, **(environment or {}))
        self.results, self.facts = [], {}
        self.begin = time.monotonic()
        self.end = self.begin + budget_s
        self.part_end = self.end
        self.under_way, self.complete = None, False
        self.live, self.ended, self.lock = set(), False, threading.Lock()
        self.telling = threading.Lock()
        os.makedirs(self.out, exist_ok=True)
        os.makedirs(self.work, exist_ok=True)

    # -- commands --

    def trainer(self):
        return os.path.join(os.path.dirname(self.unidle), "unidle-train")

    def record(self, name):
        """The folder of a record that the archive will contain."""
        if name not in self.records:
            self.records.append(name)
        return os.path.join(self.work, name)

    def run(self, *command, patience=PATIENCE_S, environment=None):
        """Returns (exit code or failure, stdout, stderr, seconds). Neither the command nor a process that it
        left behind outlives the part's time. Its output goes through files, since a leftover process could
        hold a pipe."""
        begin = time.monotonic()
        patience = min(patience, self.part_end - begin)
        if patience <= 0:
            return NOT_BEGUN, "", "", 0.0
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            try:
                with self.lock:
                    if self.ended:
                        return "not begun", "", "", 0.0
                    process = subprocess.Popen(
                        command,
                        cwd=self.work,
                        env=dict(self.environment, **(environment or {})),
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=error,
                        start_new_session=True,
                    )
                    self.live.add(process.pid)
            except OSError as failure:
                return str(failure), "", "", 0.0
            try:
                code = process.wait(patience)
            except subprocess.TimeoutExpired:
                code = "took over %.0f s" % patience
                end_all(process.pid)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(5)  # one that hangs in the driver is abandoned
            finally:
                with self.lock:
                    self.live.discard(process.pid)
            return code, text_of(out), text_of(error), time.monotonic() - begin

    def start(self, name, *command, environment=None):
        """Starts a program that runs beside others and is controlled by lines; its stderr goes into
        NAME.err."""
        with self.lock, open(self.record(name + ".err"), "w") as error:
            if self.ended:
                raise RuntimeError("not begun")
            process = subprocess.Popen(
                command,
                cwd=self.work,
                env=dict(self.environment, **(environment or {})),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=error,
                start_new_session=True,
                text=True,
            )
            self.live.add(process.pid)
        return Talk(self, name, process)

    def end_commands(self):
        """Ends all running commands, as when the suite itself is ended; no other one starts."""
        with self.lock:
            self.ended, live = True, list(self.live)
        for pid in live:
            end_all(pid)

    # -- parts --

    def part(self, name, work, expected_s, most_s, later_s):
        """Calls `work`, which adds results. It gets the time that remains after reserving `later_s` for the
        later parts, but at least twice `expected_s` and at most `most_s`. An exception fails only that part.
        """
        left = self.end - time.monotonic()
        given = min(most_s, left, max(2 * expected_s, LEAST_S, left - later_s))
        if given < LEAST_S:
            self.add(name, "skipped", why="no time left", lacked_time=True)
            return
        self.under_way, self.part_end = name, time.monotonic() + given
        self.write()
        self.attempt(name, work)
        self.under_way, self.part_end = None, self.end
        if time.monotonic() - self.archived > ARCHIVED_EACH_S:
            self.archive()

    def attempt(self, name, work):
        try:
            work()
        except Exception as failure:
            self.add(name, "fails", why="%s: %s" % (type(failure).__name__, failure))

    def again(self, name, work, most_s):
        """Runs the part once more if it lacked time that others then left over."""
        if any(one["name"] == name and one.get("lacked_time") for one in self.results):
            if self.end - time.monotonic() >= LEAST_S:
                self.results = [one for one in self.results if one["name"] != name]
                self.part(name, work, 0, most_s, 0)

    def add(self, name, status, **facts):
        """`status`: holds, fails or skipped. It is on disk when this returns."""
        with self.telling:
            if self.ended:  # later output of its commands is not a result
                return
            self.results.append(dict(facts, name=name, status=status))
            self.write()
        print("%-8s %-16s %s" % (status, name, facts.get("why") or facts.get("said", "")), flush=True)

    # -- output files --

    def counts(self):
        return {
            kind: sum(one["status"] == kind for one in self.results) for kind in ("holds", "fails", "skipped")
        }

    def write(self):
        whole = {
            "schema": "unidle.gpu-suite/1",
            "complete": self.complete,
            "under_way": self.under_way,
            "seconds": round(time.monotonic() - self.begin, 1),
            "counts": self.counts(),
            **self.facts,
            "results": self.results,
        }
        self.replace("gpu-suite.json", json.dumps(whole, indent=1))
        self.replace("gpu-suite.html", page(whole))

    def archive(self):
        """The records in one file: the small ones first, up to the size limit."""
        path = os.path.join(self.out, ARCHIVE)
        sized = sorted((size_of(os.path.join(self.work, name)), name) for name in self.records)
        with tarfile.open(path + ".new", "w:gz", compresslevel=5) as archive:
            for size, name in sized:
                archive.fileobj.flush()
                if size < MOST_OF_ONE and os.path.getsize(path + ".new") + size / 4 < MOST_ARCHIVED:
                    with contextlib.suppress(OSError):
                        archive.add(os.path.join(self.work, name), arcname=name)
        if os.path.getsize(path + ".new") < MOST_ARCHIVED:
            os.replace(path + ".new", path)
        self.archived = time.monotonic()

    def replace(self, name, text):
        path = os.path.join(self.out, name)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.replace(path + ".new", path)


class Talk:
    """A program that acts on each line of its input, and answers with a line."""

    def __init__(self, suite, name, process):
        self.suite, self.name, self.process, self.lines = suite, name, process, queue.Queue()
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def listen(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self, patience):
        """Returns a line; RuntimeError if it ended, TimeoutError if it sends none in time."""
        try:
            line = self.lines.get(timeout=max(0.1, min(patience, self.suite.part_end - time.monotonic())))
        except queue.Empty:
            raise TimeoutError("%s says nothing" % self.name) from None
        if line is None:
            self.lines.put(None)
            self.process.wait(10)
            with open(self.suite.record(self.name + ".err")) as file:
                said = file.read().strip().splitlines()[-1:] or ["no word"]
            raise RuntimeError("%s ended with %s: %s" % (self.name, self.process.returncode, said[0][:300]))
        return line

    def end(self):
        if self.process.poll() is None:
            end_all(self.process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.listener.join(5)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        with self.suite.lock:
            self.suite.live.discard(self.process.pid)


def size_of(path):
    if not os.path.isdir(path):
        return os.path.getsize(path) if os.path.exists(path) else 0
    return sum(os.path.getsize(one.path) for one in os.scandir(path) if one.is_file(follow_symlinks=False))


def text_of(file):
    file.seek(0)
    return file.read().decode(errors="replace")


def page(whole):
    def cells(one):
        keys = ("status", "name", "seconds", "said")
        row = "<tr>" + "".join("<td>" + html.escape(str(one.get(key, ""))) for key in keys)
        return row + ("<tr><td><td colspan=3>" + html.escape(one["why"]) if one.get("why") else "")

    facts = {key: value for key, value in whole.items() if key not in ("schema", "results", "device")}
    return (
        "<!doctype html><meta charset=utf-8><title>unidle on a GPU</title>"
        "<style>body{font:15px sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:left}</style>"
        "<h1>unidle on %s</h1><p>%s<table><tr><th>status<th>what<th>seconds<th>said%s</table>\n"
        % (
            html.escape(str(whole.get("device") or "no GPU")),
            html.escape(json.dumps(facts)),
            "".join(map(cells, whole["results"])),
        )
    )


# -- ending hanging processes --


def processes():
    """{process: (its parent, its session)}"""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/stat" % name) as file:
            fields = file.read().rpartition(")")[2].split()
            found[int(name)] = (int(fields[1]), int(fields[3]))
    return found


def family(root):
    """`root`, the processes of its session, and all descendants of these."""
    now = processes()
    kin = {root} | {pid for pid, (_, session) in now.items() if session == root}
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in now.items() if parent in kin} - kin
        kin |= more
        grown = bool(more)
    return kin & set(now)


def end_all(root, grace_s=3):
    """Sends SIGTERM first, so that an observer can end its command."""
    doomed = family(root)
    for sign, patience in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 2)):
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, sign)
        until = time.monotonic() + patience
        while time.monotonic() < until and any(alive(pid) for pid in doomed):
            time.sleep(0.05)
        doomed = {pid for pid in doomed if alive(pid)} | family(root)


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
