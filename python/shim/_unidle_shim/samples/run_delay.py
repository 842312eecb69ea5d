"""How long a thread stood ready for a CPU without getting one: on a busy machine that is part of the time
that a sample takes, and none of its cost."""

import os

READ_NS = 5000  # reading it costs about this much
# A thread that loses its CPU gets it back after a slice of the scheduler, one to several milliseconds. A
# shorter sample was hardly held up.
LONG_NS = 1_000_000


def read():
    """Nanoseconds so far, of this thread; None if the kernel does not count them."""
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _, ready, slices = os.read(file, 96).split()  # ran, stood ready, slices
            return int(ready) if slices != b"0" else None  # "0 0 0": not counted
        finally:
            os.close(file)
    except (OSError, ValueError):
        return None


class Own:
    """The time that samples take without standing ready. Reads the counter for long ones only; what it
    counted since then belongs to the long one, apart from less than what short ones took meanwhile."""

    def __init__(self):
        self.counted = None
        self.reads = 0  # calls of read() that asking took: no reads of the program

    def read(self):
        counted = read()
        self.reads += counted is not None
        return counted

    def begin(self, counted):
        """Before the samples of a batch, on the thread that makes them."""
        self.counted = counted

    def of_long(self, duration_ns):
        before, self.counted = self.counted, self.read()
        if before is None or self.counted is None:
            return duration_ns
        return max(0, duration_ns - (self.counted - before))
