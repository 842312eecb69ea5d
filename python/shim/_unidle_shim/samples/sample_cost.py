"""Measures the cost of making samples: time, CPU time and reads, in a worker or in the training process."""

import time

from _unidle_shim.host import event_kinds
from _unidle_shim.host.guard import caught
from _unidle_shim.loop.loop import now
from _unidle_shim.samples import batch_sizes, repeats, run_delay, whole_batches

_thread_time = time.thread_time_ns
# Timing one sample costs about this much, cold caches included. Samples are timed one by one in as
# many batches as cost at most this share of the time that making all samples takes.
_UNUSUAL = 2  # times the mean of the samples so far
_TIMING_NS = 1500
_MOST_TIMING = 0.005
_FIRST_TIMED = 4  # batches, whatever it costs
# Batches of samples cheaper than this, on average, need not be inspected while steps are only marked.
_CHEAP_NS = 20_000
# Only some of the batches cheaper than this have their CPU time measured: that takes a system call.
_CPU_FROM_NS = 500_000
_SEVERAL_NS = 20_000_000  # cheap batches share one event that spans this long
_BUCKETS_PER_OCTAVE = 4


class Samples:
    """The samples of one process. Counts are exact; quantiles come from a histogram with a resolution of 19
    %."""

    def __init__(self, loader_id):
        self.loader = loader_id
        self.count = self.total_ns = self.cpu_ns = self.collate_ns = self.batches = 0
        self.max_ns = 0
        self.again = repeats.Again()
        self.histogram = {}
        self.timed = 0  # samples in the histogram
        self.timing_ns = 0  # cost of that
        self.took = []  # ns of each sample of the current batch, if they are timed one by one
        self.own = run_delay.Own()
        self.collate_begin = self.collated = 0
        self.indices, self.batch_begin = None, 0  # of a batch that one call of the dataset makes
        self.files = None  # whether samples are read from files: read calls while the first ones were made
        self.first_fetch_ns = 0
        self.slot = None  # shared with the training process: receives first_fetch_ns
        self.asked_ns = 0  # total time of the batches whose CPU time was measured
        self.delay_ns = self.delay_asked_ns = (
            0  # stood ready for a CPU; of the batches of which that was read
        )
        self.cheap = False  # not every batch has to be inspected
        self.passed_batches = self.passed = self.passed_ns = (
            0  # of the batches not inspected: their number, samples, ns
        )
        self.hidden_queries = None  # cheap batches without an event yet: [begin, ns, samples, slowest]
        self.ring = None

    def look_at_batch(self, items):
        """One call of the dataset has made these."""
        indices, self.indices = self.indices, None
        if indices is None or len(indices) != len(items) or not items:
            return
        costly = (now() - self.batch_begin) // len(items) >= repeats.COSTLY_NS
        for index, item in zip(indices, items):
            if type(index) is int and (costly or index in self.again.known):
                self.again.look(index, item)

    def _of_all(self, part_ns, asked_ns):
        """Seconds of all batches, from a part of those that were asked for it."""
        busy = self.total_ns + self.collate_ns + self.passed_ns
        return part_ns * 1e-9 * (busy / asked_ns if 0 < asked_ns < busy else 1)

    def cpu_seconds(self):
        return self._of_all(self.cpu_ns, self.asked_ns)

    def count_unwatched(self, ring, begin_ns, duration_ns, count, batches):
        """Counts batches of which only the wait was timed. The program's sampler works in it as well: of that
        wait, no more counts than so many watched samples took."""
        each_ns = (self.total_ns + self.collate_ns) / self.count
        duration_ns = min(duration_ns, round(each_ns * count))
        self.passed_batches += batches
        self.passed += count
        self.passed_ns += duration_ns
        hidden_queries = self.hidden_queries
        if hidden_queries is None:
            self.ring, self.hidden_queries = ring, [begin_ns, duration_ns, count, 0]
        else:
            hidden_queries[1] += duration_ns
            hidden_queries[2] += count

    def tell(self):
        """Writes the event of the batches without one."""
        hidden_queries, self.hidden_queries = self.hidden_queries, None
        if hidden_queries is not None and self.ring is not None:
            begin, busy, count, slowest = hidden_queries
            self.ring.emit(event_kinds.SAMPLE, begin, busy, 0, 0, 0, float(count), slowest)

    def each(self):
        """Whether the samples of the next batch are timed one by one, and the time that their thread stood
        ready is read."""
        return self.batches < _FIRST_TIMED or self.timing_ns <= _MOST_TIMING * self.total_ns

    def begin_batch(self):
        """Returns the time that this thread stood ready for a CPU so far."""
        self.timing_ns += 2 * run_delay.READ_NS
        delay_ns = self.own.read()
        self.own.begin(delay_ns)
        return delay_ns

    def end_batch(self, delay_ns, duration_ns):
        after_ns = self.own.read()
        if after_ns is not None:
            self.delay_ns += after_ns - delay_ns
            self.delay_asked_ns += duration_ns

    def program_reads(self):
        calls = read_calls()
        return None if calls is None else calls - self.own.reads

    def own_ns(self, duration_ns):
        """The time of a sample without what its thread stood ready for a CPU. Asked for unusual samples only:
        where most take long, as many readings would use up what timing may cost."""
        if duration_ns < run_delay.LONG_NS or duration_ns * self.count < _UNUSUAL * self.total_ns:
            return duration_ns
        self.timing_ns += run_delay.READ_NS
        return self.own.of_long(duration_ns)

    def take_timed(self):
        """Counts the samples that were timed one by one. Returns the time of the slowest in ns, 0 without
        any."""
        took, histogram = self.took, self.histogram
        if not took:
            return 0
        for one in took:
            bits = one.bit_length()
            # The octave, and the quarter of it: the two bits below the highest one.
            bucket = (bits - 1) * _BUCKETS_PER_OCTAVE + (one >> bits - 3 & 3) if bits > 2 else 0
            histogram[bucket] = histogram.get(bucket, 0) + 1
        self.timed += len(took)
        self.timing_ns += len(took) * _TIMING_NS
        slowest = max(took)
        took.clear()
        return slowest

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
        cpu_s, looked_ns = self.cpu_seconds(), max(1, self.total_ns + self.collate_ns)
        all_s = 1e-9 * (1 + self.passed_ns / looked_ns)  # assumes that the skipped batches are alike
        body = {
            "id": self.loader,
            "count": self.count + self.passed,
            "seconds_total": self.total_ns * all_s,
            "max": self.max_ns * 1e-9,
            "batch_collate_seconds": self.collate_ns * all_s,
            "cpu_seconds": cpu_s,
            "wait_seconds": max(0, looked_ns * all_s - cpu_s),
            "batches": self.batches + self.passed_batches,
        }
        if self.delay_asked_ns:
            body["run_delay_seconds"] = min(
                body["wait_seconds"], self._of_all(self.delay_ns, self.delay_asked_ns)
            )
        if self.timed >= 10:
            body.update(p50=self.percentile(0.5), p95=self.percentile(0.95), p99=self.percentile(0.99))
        if self.files is not None:
            body["reads_files"] = self.files
        told = self.again.note()
        if told is not None:
            body["again"] = told
        return body


class TimedDataset:
    """Replaces the dataset while one batch is fetched, and times each sample."""

    __slots__ = ("dataset", "samples")

    def __init__(self, dataset, samples):
        self.dataset, self.samples = dataset, samples

    def __getitem__(self, index):
        t0 = now()
        item = self.dataset[index]
        try:
            duration_ns, again = now() - t0, self.samples.again
            self.samples.took.append(self.samples.own_ns(duration_ns))
            if type(index) is int and (duration_ns >= repeats.COSTLY_NS or index in again.known):
                again.look(index, item)
        except BaseException as failure:
            caught(failure)
        return item

    def step_aside(self, fetcher):
        fetcher.dataset = self.dataset


class TimedIterator:
    """The same for the iterator of an iterable dataset."""

    __slots__ = ("iterator", "samples")

    def __init__(self, iterator, samples):
        self.iterator, self.samples = iterator, samples

    def __iter__(self):
        return self

    def __next__(self):
        t0 = now()
        item = next(self.iterator)
        try:
            self.samples.took.append(self.samples.own_ns(now() - t0))
        except BaseException as failure:
            caught(failure)
        return item

    def step_aside(self, fetcher):
        fetcher.dataset_iter = self.iterator


def read_calls():
    """Read calls of this thread so far; None if the kernel does not report them."""
    try:
        with open("/proc/thread-self/io", "rb") as file:
            for line in file:
                if line.startswith(b"syscr:"):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return None


def prepare(fetcher, samples):
    """Called once per fetcher: its collate function marks where the samples end, and counts them."""
    collate = fetcher.collate_fn

    def timed_collate(data):
        if type(data) is list:
            samples.collated = len(data)
            try:
                samples.look_at_batch(data)
            except BaseException as failure:
                caught(failure)
        samples.collate_begin = now()
        return collate(data)

    fetcher.collate_fn = timed_collate
    fetcher._unidle = samples
    if hasattr(fetcher, "dataset_iter"):
        fetcher._unidle_iterator = TimedIterator(fetcher.dataset_iter, samples)


def fetch(original, fetcher, index, samples, state):
    """Makes one batch, timed. Exceptions from the dataset pass through."""
    try:
        asked = _before(fetcher, samples, state)
        samples.indices = index if type(index) is list and asked[0] is None else None
    except BaseException as failure:
        asked = caught(failure)
    if asked is None:
        return original(fetcher, index)
    batch = None
    try:
        batch = original(fetcher, index)
        return batch
    finally:
        _after(fetcher, samples, state, index, asked, batch)


def _before(fetcher, samples, state):
    """Returns (the wrapper of the dataset, time, CPU time, time of standing ready, read calls); all but the
    first time may be None."""
    if getattr(fetcher, "_unidle", None) is not samples:
        prepare(fetcher, samples)
    batches = samples.batches
    reads = samples.program_reads() if 0 < batches < 4 else None
    asks = batches < 4 or not batches & 15 or samples.total_ns > _CPU_FROM_NS * batches
    samples.collate_begin = samples.collated = 0
    samples.took.clear()
    stand_in = delay = None
    if samples.each():
        delay = samples.begin_batch()
        stand_in = _stand_in(fetcher, samples)
    cpu = _thread_time() if asks else None
    samples.batch_begin = now()
    return stand_in, samples.batch_begin, cpu, delay, reads


def _after(fetcher, samples, state, index, asked, batch):
    try:
        t1 = now()
        stand_in, t0, cpu, delay, reads = asked
        if stand_in is not None:
            stand_in.step_aside(fetcher)
        collated = samples.collate_begin or t1
        if cpu is not None:
            samples.cpu_ns += _thread_time() - cpu
            samples.asked_ns += t1 - t0
        if delay is not None:
            samples.end_batch(delay, t1 - t0)
        if 0 < samples.batches < 4:
            after = samples.program_reads()
            # the query itself reads: once before, once after
            samples.files = bool(samples.files) or (
                reads is not None and after is not None and after - reads > 2
            )
        # Without a batch it is the end of an iterable dataset, or an exception.
        count = _count(fetcher, samples, index, batch) if samples.collate_begin else 0
        account(samples, state.ring, t0, t1, count, collated - t0 - samples.again.spent(), t1 - collated)
    except BaseException as failure:
        caught(failure)


def _count(fetcher, samples, index, batch):
    if not fetcher.auto_collation:
        items = len(index) if isinstance(index, list) else 1
    else:
        items = samples.collated or len(index)
    if items != 1:
        return items
    count = batch_sizes.samples_of(batch, 1) or 1
    if count > 1:  # one item is a whole batch: each of its samples costs as much
        samples.took[:] = [one // count for one in samples.took]
    return count


def _stand_in(fetcher, samples):
    """Returns a wrapper that times each sample of the next batch; None if one call makes the whole batch."""
    if hasattr(fetcher, "dataset_iter"):
        fetcher.dataset_iter = fetcher._unidle_iterator
        return fetcher._unidle_iterator
    if not fetcher.auto_collation or whole_batches.gives_batches(fetcher.dataset):
        return None
    fetcher.dataset = stand_in = TimedDataset(fetcher.dataset, samples)
    return stand_in


def account(samples, ring, t0, t1, count, busy, collate_ns):
    samples.count += count
    samples.total_ns += busy
    samples.collate_ns += collate_ns
    samples.batches += 1
    samples.cheap = samples.batches >= 4 and samples.total_ns < _CHEAP_NS * samples.count
    if not samples.first_fetch_ns:
        samples.first_fetch_ns = t1 - t0
        if samples.slot is not None:
            samples.slot[0:8] = samples.first_fetch_ns.to_bytes(8, "little")
    worst = samples.take_timed() or (busy // count if count else 0)
    if worst > samples.max_ns:
        samples.max_ns = worst
    if not count:
        return
    hidden_queries = samples.hidden_queries
    if hidden_queries is not None:
        if t1 - hidden_queries[0] < _SEVERAL_NS:
            hidden_queries[1] += busy
            hidden_queries[2] += count
            if worst > hidden_queries[3]:
                hidden_queries[3] = worst
            return
        samples.tell()
    if t1 - t0 < _SEVERAL_NS:
        samples.ring, samples.hidden_queries = ring, [t0, busy, count, worst]
    else:
        ring.emit(event_kinds.SAMPLE, t0, busy, 0, 0, 0, float(count), worst)
