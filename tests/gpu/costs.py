"""The cost of observation: a bare and an observed program train alternately, as two running processes. The
observer is paused while the bare program trains."""

import contextlib
import os
import re
import shutil
import signal
import statistics
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TURNS = 20  # per side: single ones differ by some percent on a virtual machine
TURN_S = 0.25
WARM_S = 5.0  # at first every step is observed in full
END_S = 5.0  # for all programs to end
SETTLE_S = 0.1  # left out of each interval: the observer catches up
MOST = 1.01  # ratio of step times, observed over bare


class Side:
    """One of the programs: bare if `options` is None, otherwise under `unidle run` with these options."""

    def __init__(self, suite, name, kind, options):
        command = [suite.python, os.path.join(HERE, "programs", "turns.py"), kind]
        if options is not None:
            record = suite.record(name + ".rec")
            shutil.rmtree(record, ignore_errors=True)
            command = [suite.unidle, "run", "-o", record, *options, "--"] + command
        self.observed, self.talk = options is not None, suite.start(name, *command)

    def begin(self, seconds):
        self.let(True)
        self.talk.say(str(seconds))

    def end_turn(self, patience=60):
        """Seconds per step."""
        count, seconds = self.talk.hear(patience).split()
        self.let(False)
        return float(seconds) / int(count)

    def turn(self):
        self.begin(SETTLE_S)
        self.talk.hear(60)
        self.begin(TURN_S)
        return self.end_turn()

    def let(self, go):
        if self.observed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.talk.process.pid, signal.SIGCONT if go else signal.SIGSTOP)

    def let_end(self):
        """Lets the program end by itself, so that its record is complete."""
        self.let(True)
        with contextlib.suppress(OSError):
            self.talk.process.stdin.close()

    def end(self, patience):
        with contextlib.suppress(Exception):
            self.talk.process.wait(patience)
        self.talk.end()


class Programs:
    """The programs of several kinds of steps, {(kind, name): options}: all start and warm up at once."""

    def __init__(self, suite, wanted):
        self.sides = {}
        try:
            for (kind, name), options in wanted.items():
                self.sides[kind, name] = Side(suite, "turns-%s-%s" % (kind, name), kind, options)
            for side in self.sides.values():
                side.talk.hear(60)
            for side in self.sides.values():
                side.begin(WARM_S)
            for side in self.sides.values():
                side.end_turn()
        except Exception:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        for side in self.sides.values():
            side.let_end()
        until = time.monotonic() + END_S
        for side in self.sides.values():
            side.end(max(0.1, until - time.monotonic()))

    def alternate(self, kind, turns=None):
        """[{name: seconds per step}] of each round; the order alternates."""
        names = [name for of, name in self.sides if of == kind]
        rounds = []
        for number in range(turns or TURNS):
            order = names if number % 2 == 0 else names[::-1]
            rounds.append({name: self.sides[kind, name].turn() for name in order})
        return rounds


def ratios(rounds, side, base):
    return [one[side] / one[base] for one in rounds]


def spread(values):
    return "%.4f (%.4f to %.4f)" % (statistics.median(values), min(values), max(values))


FAILURES = (RuntimeError, TimeoutError, ValueError, OSError)


def overhead(suite):
    """The cost of `unidle run`, for steps of launches and of products; the median of the pairs decides."""
    kinds = ("host", "device")
    wanted = {(kind, name): how for kind in kinds for name, how in (("bare", None), ("observed", []))}
    try:
        with Programs(suite, wanted) as programs:
            for kind in kinds:
                tell_overhead(suite, kind, programs.alternate(kind))
    except FAILURES as failure:
        tell_failure(suite, "overhead", failure)


def tell_overhead(suite, kind, rounds):
    found = ratios(rounds, "observed", "bare")
    slow = statistics.median(found) > MOST
    suite.add(
        "overhead-" + kind,
        "fails" if slow else "holds",
        why="the median of the pairs is above %.2f: %s" % (MOST, spread(found)) if slow else "",
        said="observed %s of bare, steps of %.3f ms" % (spread(found), median_ms(rounds, "bare")),
        rounds=rounds,
    )


def kernels(suite):
    """The cost of `--kernels`, for launches and for a graph's replays."""
    kinds = ("host", "graph")
    sides = (("observed", []), ("kernels", ["--kernels"]))
    wanted = {(kind, name): how for kind in kinds for name, how in sides}
    try:
        with Programs(suite, wanted) as programs:
            for kind in kinds:
                rounds = programs.alternate(kind, turns=5)
                said = "with --kernels %s of without, steps of %.3f ms"
                told = said % (spread(ratios(rounds, "kernels", "observed")), median_ms(rounds, "observed"))
                suite.add("kernels-" + kind, "holds", said=told, rounds=rounds)
    except FAILURES as failure:
        tell_failure(suite, "kernels", failure)


def trace(suite):
    """Steps after a profiler window, compared with those of a program without one."""
    wanted = {("host", "without"): [], ("host", "after"): ["--trace", "10"]}
    try:
        with Programs(suite, wanted) as programs:
            rounds = programs.alternate("host", turns=5)
    except FAILURES as failure:
        tell_failure(suite, "trace", failure)
        return
    said = "after the window %s of without one, steps of %.3f ms"
    told = said % (spread(ratios(rounds, "after", "without")), median_ms(rounds, "without"))
    suite.add("trace", "holds", said=told, rounds=rounds)


def median_ms(rounds, side):
    return 1e3 * statistics.median(one[side] for one in rounds)


def tell_failure(suite, name, failure):
    lacked = isinstance(failure, TimeoutError)
    why = re.sub(r"\s+", " ", str(failure))
    suite.add(name, "skipped" if lacked else "fails", why=why, lacked_time=lacked)
