"""What observation costs: programs that train in turns, bare and observed, within one pair of processes. The
observer stands still while it is not its program's turn."""

import contextlib
import os
import re
import shutil
import signal
import statistics

HERE = os.path.dirname(os.path.abspath(__file__))
TURNS = 7  # of each side
TURN_S = 0.8
WARM_S = 5.0  # at first every step is seen in full
SETTLE_S = 0.3  # of a turn, left out: what the observer caught up on
MOST = {"host": 1.02, "device": 1.01, "graph": 1.01}  # of the time of a step, observed over bare


class Side:
    """One of the programs: bare where `options` is None, else under `unidle run` with these options."""

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
        """Seconds of a step."""
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

    def end(self):
        self.let(True)
        self.talk.process.stdin.close()  # the program ends by itself, and its record is whole
        with contextlib.suppress(Exception):
            self.talk.process.wait(10)
        self.talk.end()


def in_turns(suite, kind, sides, turns=TURNS):
    """[{side: seconds of a step}] of each round; their order alternates. `sides`: {name: options}."""
    programs = {}
    try:
        for name, options in sides.items():
            programs[name] = Side(suite, "turns-%s-%s" % (kind, name), kind, options)
        for program in programs.values():
            program.talk.hear(60)
        for program in programs.values():
            program.begin(WARM_S)
        for program in programs.values():
            program.end_turn()
        rounds = []
        for number in range(turns):
            order = list(programs) if number % 2 == 0 else list(reversed(programs))
            rounds.append({name: programs[name].turn() for name in order})
        return rounds
    finally:
        for program in programs.values():
            program.end()


def ratios(rounds, side, base):
    return [one[side] / one[base] for one in rounds]


def spread(values):
    return "%.4f (%.4f to %.4f)" % (statistics.median(values), min(values), max(values))


def overhead(suite):
    """The cost of `unidle run`, of steps of launches and of products; the median of the pairs decides."""
    for kind in ("host", "device"):
        name = "overhead-" + kind
        try:
            rounds = in_turns(suite, kind, {"bare": None, "observed": []})
        except (RuntimeError, TimeoutError, ValueError) as failure:
            tell_failure(suite, name, failure)
            continue
        found = ratios(rounds, "observed", "bare")
        slow = statistics.median(found) > MOST[kind]
        suite.add(
            name,
            "fails" if slow else "holds",
            why="the median of the pairs is above %.2f: %s" % (MOST[kind], spread(found)) if slow else "",
            said="observed %s of bare, steps of %.3f ms"
            % (spread(found), 1e3 * statistics.median(one["bare"] for one in rounds)),
            rounds=rounds,
        )


def kernels(suite):
    """The cost of `--kernels`, of launches and of a graph's replays."""
    for kind in ("host", "graph"):
        name = "kernels-" + kind
        try:
            rounds = in_turns(suite, kind, {"observed": [], "kernels": ["--kernels"]}, turns=5)
        except (RuntimeError, TimeoutError, ValueError) as failure:
            tell_failure(suite, name, failure)
            continue
        found = ratios(rounds, "kernels", "observed")
        suite.add(
            name,
            "holds",
            said="with --kernels %s of without, steps of %.3f ms"
            % (spread(found), 1e3 * statistics.median(one["observed"] for one in rounds)),
            rounds=rounds,
        )


def trace(suite):
    """Steps before a window of the profiler, and after it: half-second turns of one program."""
    side = Side(suite, "turns-trace", "host", ["--trace", "10"])
    try:
        side.talk.hear(60)
        steps = []
        for _ in range(12):
            side.begin(0.5)
            steps.append(side.end_turn())
    except (RuntimeError, TimeoutError, ValueError) as failure:
        tell_failure(suite, "trace", failure)
        return
    finally:
        side.end()
    rounds = in_turns(suite, "host", {"bare": None}, turns=3)
    bare, after = statistics.median(one["bare"] for one in rounds), statistics.median(steps[-6:])
    suite.add(
        "trace",
        "holds",
        said="steps of %.3f ms bare, %.3f ms after the window: %.3f times"
        % (1e3 * bare, 1e3 * after, after / bare),
        steps=steps,
    )


def tell_failure(suite, name, failure):
    lacked = isinstance(failure, TimeoutError)
    why = re.sub(r"\s+", " ", str(failure))
    suite.add(name, "skipped" if lacked else "fails", why=why, lacked_time=lacked)
