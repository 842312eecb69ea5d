"""What producing samples costs, in a worker or, without workers, in the training process."""

import time

from . import hiding, off, probe
from .loop import now

_thread_time = time.thread_time_ns
_EACH_FROM_NS = 20_000     # a sample cheaper than this is timed by the batch: two clock readings would be dear beside it
_TRACK_IDS = 1 << 20       # ids kept to tell samples seen again
_BUCKETS_PER_OCTAVE = 4


class Samples:
    """Of one process. Counted exactly; the spread from a histogram with a resolution of 19 %."""

    def __init__(self, loader_id):
        self.loader = loader_id
        self.count = self.total_ns = self.cpu_ns = self.collate_ns = self.batches = 0
        self.max_ns = 0
        self.seen, self.repeats = set(), 0
        self.histogram = {}
        self.timed = 0         # samples in the histogram
        self.worst = 0         # of the batch that is going on
        self.collate_begin = 0
        self.files = None      # whether samples are read from files: read calls seen while the first ones were made
        self.first_fetch_ns = 0
        self.slot = None       # shared with the training process: takes first_fetch_ns

    def take_one(self, duration_ns):
        bucket = int(_BUCKETS_PER_OCTAVE * _log2(duration_ns))
        self.histogram[bucket] = self.histogram.get(bucket, 0) + 1
        self.timed += 1
        if duration_ns > self.worst:
            self.worst = duration_ns

    def each(self):
        """Whether the samples of the next batch are timed one by one."""
        batches = self.batches
        return batches < 2 or self.total_ns > _EACH_FROM_NS * self.count or batches % 64 == 0

    def percentile(self, part):
        left = part * self.timed
        for bucket in sorted(self.histogram):
            left -= self.histogram[bucket]
            if left <= 0:
                return min(2.0 ** ((bucket + 0.5) / _BUCKETS_PER_OCTAVE), self.max_ns or 1e18) * 1e-9
        return None

    def note(self):
        if not self.count:
            return None
        body = {
            "id": self.loader, "count": self.count, "seconds_total": self.total_ns * 1e-9, "max": self.max_ns * 1e-9,
            "batch_collate_seconds": self.collate_ns * 1e-9, "cpu_seconds": self.cpu_ns * 1e-9,
            "wait_seconds": max(0, self.total_ns + self.collate_ns - self.cpu_ns) * 1e-9, "batches": self.batches,
        }
        if self.timed >= 10:
            body.update(p50=self.percentile(0.5), p95=self.percentile(0.95), p99=self.percentile(0.99))
        if self.seen:
            body.update(distinct=len(self.seen), repeats=self.repeats)
        if self.files is not None:
            body["reads_files"] = self.files
        return body


def _log2(value):
    return value.bit_length() - 1 + value / (1 << (value.bit_length() - 1)) - 1 if value > 0 else 0


class TimedDataset:
    """Stands for the dataset while one batch is fetched, and times each sample."""

    __slots__ = ("dataset", "samples")

    def __init__(self, dataset, samples):
        self.dataset, self.samples = dataset, samples

    def __getitem__(self, index):
        t0 = now()
        item = self.dataset[index]
        self.samples.take_one(now() - t0)
        return item


class TimedIterator:
    __slots__ = ("iterator", "samples", "ns", "count")

    def __init__(self, iterator, samples):
        self.iterator, self.samples = iterator, samples
        self.ns = self.count = 0

    def __iter__(self):
        return self

    def __next__(self):
        t0 = now()
        item = next(self.iterator)
        took = now() - t0
        self.samples.take_one(took)
        self.ns += took
        self.count += 1
        return item


for _kind in (TimedDataset, TimedIterator):
    for _name in ("__getitem__", "__next__"):
        if _name in _kind.__dict__:
            _function = _kind.__dict__[_name]
            _function.__code__ = _function.__code__.replace(co_filename=hiding.MARK)


def read_calls():
    """Read calls of this thread so far; None where the kernel does not tell."""
    try:
        with open("/proc/thread-self/io", "rb") as file:
            for line in file:
                if line.startswith(b"syscr:"):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return None


def prepare(fetcher, samples):
    """Once a fetcher: its collate function marks where the samples end."""
    collate = fetcher.collate_fn

    def timed_collate(data):
        samples.collate_begin = now()
        return collate(data)

    timed_collate.__code__ = timed_collate.__code__.replace(co_filename=hiding.MARK)
    fetcher.collate_fn = timed_collate
    fetcher._unidle = samples
    if hasattr(fetcher, "dataset_iter"):
        fetcher.dataset_iter = TimedIterator(fetcher.dataset_iter, samples)


def fetch(original, fetcher, index, samples, ring):
    """One batch, timed. What the dataset raises passes through."""
    iterator = getattr(fetcher, "dataset_iter", None)
    dataset = None
    probing = samples.batches in (1, 2, 3)
    reads = read_calls() if probing else None
    if iterator is not None:
        had, spent = iterator.count, iterator.ns
    elif fetcher.auto_collation and samples.each() and not getattr(fetcher.dataset, "__getitems__", None):
        dataset = fetcher.dataset
        fetcher.dataset = TimedDataset(dataset, samples)
    samples.collate_begin = samples.worst = 0
    c0, t0 = _thread_time(), now()
    try:
        return original(fetcher, index)
    finally:
        t1, c1 = now(), _thread_time()
        try:
            if dataset is not None:
                fetcher.dataset = dataset
            collated = samples.collate_begin or t1
            if iterator is not None:
                count, busy = iterator.count - had, iterator.ns - spent
            else:
                count, busy = len(index) if fetcher.auto_collation else 1, collated - t0
            if reads is not None:
                after = read_calls()
                # the asking itself reads: once before, once after
                samples.files = bool(samples.files) or (after is not None and after - reads > 2)
            first = track(samples, index) if dataset is not None else 0
            account(samples, ring, t0, t1, count, busy, t1 - collated, c1 - c0, first)
        except Exception as failure:
            off(failure)


def account(samples, ring, t0, t1, count, busy, collate_ns, cpu_ns, first):
    samples.count += count
    samples.total_ns += busy
    samples.cpu_ns += cpu_ns
    samples.collate_ns += collate_ns
    samples.batches += 1
    if not samples.first_fetch_ns:
        samples.first_fetch_ns = t1 - t0
        if samples.slot is not None:
            samples.slot[0:8] = samples.first_fetch_ns.to_bytes(8, "little")
    worst = samples.worst or (busy // count if count else 0)
    samples.max_ns = max(samples.max_ns, worst)
    if count:
        ring.emit(probe.SAMPLE, t0, busy, 0, first, 0, float(count), worst)


fetch.__code__ = fetch.__code__.replace(co_filename=hiding.MARK)


def track(samples, index):
    """Counts samples that this process makes again."""
    before = len(samples.seen)
    if before < _TRACK_IDS:
        try:
            samples.seen.update(index)
            samples.repeats += len(index) - (len(samples.seen) - before)
        except TypeError:
            pass
    first = index[0] if index and isinstance(index[0], int) and index[0] >= 0 else 0
    return min(first, (1 << 62) - 1)
