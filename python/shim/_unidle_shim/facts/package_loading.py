"""Reads the settings of a Loader of the package unidle, and the cost of its samples."""

import weakref

from _unidle_shim.host import places


def loader_facts(loader, real):
    """The fields of loading.loader_facts."""
    source = real.source
    dataset = getattr(source, "dataset", None)  # the program's own data set, see unidle.data.wrap
    workers = real.workers
    return {
        "made_with": "unidle" if dataset is None else "unidle.wrap",
        "workers": workers,
        "batch_size": real.batch_size,
        "pin_memory": str(real.device).startswith("cuda") or getattr(real, "pin_memory", False),
        "prefetch_factor": real.prefetch if workers else None,
        "persistent_workers": True,
        "drop_last": real.drop_last,
        "iterable": False,
        "map_style": True,
        "collate": None,
        "sampler": None,
        "dataset": type(source if dataset is None else dataset).__name__,
        "dataset_where": places.of_function(getattr(type(dataset), "__getitem__", None)),
        "dataset_len": len(source),
        "in_memory": False,
        "in_memory_bytes": None,
        "draws": None,
        "batched_getitem": dataset is None or hasattr(dataset, "__getitems__"),
        "start_method": "thread" if workers else None,
        "where": loader.where,
        "samples_per_epoch": len(source),
    }


class Costs:
    """Replaces sample_cost.Samples for a Loader of the package, which counts by itself. The thread that takes
    the batches reads the counts."""

    OFTEN_NS = 50_000_000  # between two queries
    count, cheap, files = 0, True, None  # batches need not be inspected

    def __init__(self, loader):
        self.loader = loader  # patches.loaders.Loader
        self.stream = (
            None  # weak reference to the stream of the newest batches: the program's, and it has threads
        )
        self.before = self.now = (0, 0, 0, 0)  # totals of the earlier streams, and of this one
        self.stages_before = self.stages_now = (0, 0, 0, 0)
        self.asked_ns = 0

    def look(self, stream, t):
        """The stream has returned a batch. The costs accumulate by themselves, so an occasional query is
        enough."""
        if t - self.asked_ns > self.OFTEN_NS or self.stream is None or self.stream() is not stream:
            self.asked_ns = t
            self.ask(stream)

    def ask(self, stream):
        if self.stream is None or self.stream() is not stream:
            self.before, self.now = self.all(), (0, 0, 0, 0)
            self.stages_before, self.stages_now = self.stages(), (0, 0, 0, 0)
            self.stream = weakref.ref(stream)
        self.now = max(self.now, stream.work())
        if hasattr(stream, "stages"):  # missing in older versions of the package
            self.stages_now = max(self.stages_now, stream.stages(), key=sum)

    def ask_again(self):
        """The process ends."""
        stream = self.stream() if self.stream is not None else None
        if stream is not None:
            self.ask(stream)

    def all(self):
        """Samples, ns, ns of the slowest, ns of CPU time."""
        (samples, busy, slowest, cpu), (more, took, slow, spent) = self.before, self.now
        return samples + more, busy + took, max(slowest, slow), cpu + spent

    def stages(self):
        """ns of all threads by activity, in the package's order."""
        return tuple(map(sum, zip(self.stages_before, self.stages_now)))

    def note(self):
        samples, busy_ns, slowest_ns, cpu_ns = self.all()
        if not samples:
            return None
        cpu_ns = min(cpu_ns, busy_ns)  # includes batches made ahead
        stages = self.stages()
        return {
            "id": self.loader.id,
            "stages": [ns * 1e-9 for ns in stages] if any(stages) else None,
            "count": samples,
            "batches": self.loader.batches,
            "seconds_total": busy_ns * 1e-9,
            "max": slowest_ns * 1e-9,
            "cpu_seconds": cpu_ns * 1e-9,
            "wait_seconds": (busy_ns - cpu_ns) * 1e-9,
        }

    def tell(self):
        """Does nothing: there is nothing left to write."""

    def count_unwatched(self, *batches):
        """Does nothing: the package counts."""
