"""What writing a step into the ring from Python costs the training thread: for a step observed in full, and
for one that was only marked.

Thread CPU time, the median of rounds; a reader empties the ring between them. With `--root` measures the
shim of another checkout, to compare two alternately.

"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

STEPS = 2000


def median_ns(ring, rounds, work):
    spent = []
    for _ in range(rounds):
        ring._tail_word[0] = ring._head
        begin = time.thread_time_ns()
        work()
        spent.append((time.thread_time_ns() - begin) / STEPS)
    return statistics.median(spent)


def measure(rounds):
    from _unidle_shim.host import probe
    from _unidle_shim.loop import short_steps, step_events
    from _unidle_shim.loop.step_parts import Parts

    ring, parts, begin = probe.Ring("train"), Parts(10**12), 10**12
    parts.end = parts.begin + 10**6
    parts.input = parts.forward = parts.backward = parts.optimizer = 10**5
    parts.loss, parts.losses = 0.5, 1

    class Loop:
        steps = samples = 0
        usual_samples, micro = 32, {1: 5}

    loop, marked = Loop(), short_steps.MarkedSteps.__new__(short_steps.MarkedSteps)
    loop.ring, marked.each = ring, 1
    steps = [(begin + number * 10**6, 10**6, 1000, 32, 1) for number in range(STEPS)]

    def in_full():
        for number in range(STEPS):
            step_events.write(ring, parts, number, number * 32, 32, 1)

    return {
        "in_full": median_ns(ring, rounds, in_full),
        "marked": median_ns(ring, rounds, lambda: marked._write(loop, Parts(begin), steps)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    sys.path.insert(0, str(options.root / "python" / "shim"))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UNIDLE_PROBE_DIR"] = folder
        found = measure(options.rounds)
    print(json.dumps({"name": "step_event", "unit": "ns of CPU time a step", "ours": found, "peers": {}}))


if __name__ == "__main__":
    main()
