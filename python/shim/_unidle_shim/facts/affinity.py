"""CPU affinity of the computing threads, if the program or its libraries have restricted it."""

import os

_MOST_THREADS = 256
_BUSY = 0.05  # of the CPU time of the busiest thread, since the last check


class Affinity:
    """The affinity in this process. `thread`: the native id of the followed thread."""

    def __init__(self, thread):
        self.thread = thread
        self.ticks = {}  # native id -> CPU time at the last check
        self.narrowed = False

    def note(self, role):
        """Returns None while all CPUs may be used. A mask belongs to one thread: threads started before keep
        their own, and an idle thread is no evidence."""
        try:
            cpus = os.sched_getaffinity(self.thread)
            if len(cpus) >= (os.cpu_count() or 1) and not self.narrowed:
                return None
            self.narrowed = True
            for thread in self._busy():
                cpus = cpus | _of(thread)
        except (OSError, AttributeError):
            return None  # the thread is gone, or this system has no masks
        return {"type": "affinity", "role": role, "cpus": as_list(cpus)}

    def _busy(self):
        before, self.ticks = self.ticks, {}
        for name in os.listdir("/proc/self/task")[:_MOST_THREADS]:
            ticks = _cpu_ticks(name)
            if ticks is not None:
                self.ticks[int(name)] = ticks
        spent = {thread: ticks - before.get(thread, 0) for thread, ticks in self.ticks.items()}
        least = _BUSY * max(spent.values(), default=0)
        return [thread for thread, ticks in spent.items() if ticks > least]


def _of(thread):
    try:
        return os.sched_getaffinity(thread)
    except OSError:
        return set()


def _cpu_ticks(name):
    try:
        with open("/proc/self/task/%s/stat" % name, "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return None


def as_list(cpus):
    """{0, 1, 2, 5} -> "0-2,5"."""
    parts = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][1] + 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join("%d" % first if first == last else "%d-%d" % (first, last) for first, last in parts)
