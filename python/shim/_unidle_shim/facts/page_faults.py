"""How often this process asks the system for memory while it trains, by page faults, and its CPU time."""

import resource
import time


class PageFaults:
    def __init__(self):
        self.begin = None  # of the training: _used()

    def notes(self, steps):
        """`steps`: finished ones. What happens before the first one counts as start-up."""
        if not steps:
            return
        used = _used()
        if self.begin is None:
            self.begin = used
            return
        faults, system_s, cpu_s, seconds = (now - before for now, before in zip(used, self.begin))
        yield (
            ("page_faults",),
            {
                "type": "page_faults",
                "faults": faults,
                "system_seconds": system_s,
                "cpu_seconds": cpu_s,
                "seconds": seconds,
            },
        )


def _used():
    """(page faults without I/O, CPU time in the kernel, all CPU time, time); without child processes."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt, usage.ru_stime, usage.ru_stime + usage.ru_utime, time.monotonic()
