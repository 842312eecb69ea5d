"""cache.features at run time: keeps the samples that a map-style dataset made in the first epoch.

Samples are kept only if they are shown to depend on their index alone:

- the first samples of every process are the same to the byte when they are made twice;
- no sample draws random numbers of Python, numpy or torch;
- the numbers and strings that the dataset holds do not change;
- now and then a kept sample is made once more and compared.

If any of these fails, the cache is turned off for all processes, and the reason is reported. Samples are
stored in memory that the training process shares with the workers it forks. It has an index, and one area
for each process to write to, so that no locks are needed. The program gets copies.
"""

import mmap
import platform
import sys
import weakref

from _unidle_shim.facts import loading
from _unidle_shim.host import guard
from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.guard import caught
from _unidle_shim.knobs import disk_cache, kept_calls
from _unidle_shim.loop.loop import now
from _unidle_shim.samples import own_state, packing, whole_batches
from _unidle_shim.samples.free_memory import available_bytes
from _unidle_shim.source import identity
from _unidle_shim.source.purity import drew, numbers_of, random_states, restore

_PROVED_TWICE = 3  # samples that each process makes twice before it keeps any
_MISSES_PER_PROOF = 64  # later, one in this many
_GONE_AFTER_AN_EPOCH = 2  # datasets like this one that lasted one epoch each: programs make such ones again
_HITS_PER_PROOF = 64  # one in this many kept samples is made again and compared
_CHEAP_NS = 100_000  # a cheaper sample is made as fast as it is looked up
_SHARE_OF_MEMORY = 0.5  # of the memory that is free when the cache is made
_NO_RESERVE = 0x4000  # MAP_NORESERVE: areas use memory only as they fill
_UNDECIDED, _KEPT, _OFF, _IMPURE = 0, 1, 2, 3  # the last: off, but functions within it may be kept
_HEADER = 4096  # state, then one word of bytes used for each area


class Store:
    """Samples of one dataset by index. A slot is two words: area and offset, then length; the first is
    written last."""

    def __init__(self, count, areas):
        self.count = count
        self.budget = int(available_bytes() * _SHARE_OF_MEMORY)
        self.room = self.budget // areas & ~(mmap.PAGESIZE - 1)
        flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _NO_RESERVE
        self._index_memory = mmap.mmap(-1, _HEADER + 16 * count, flags=flags)
        self._words = memoryview(self._index_memory).cast("Q")
        self._areas = [memoryview(mmap.mmap(-1, self.room, flags=flags)) for _ in range(areas)]

    @property
    def state(self):
        return self._words[0]

    @state.setter
    def state(self, value):
        self._words[0] = value

    def get(self, index):
        at = (_HEADER >> 3) + 2 * index
        place = self._words[at]
        if not place:
            return None
        begin = place & ((1 << 48) - 1)
        return self._areas[(place >> 48) - 1][begin : begin + self._words[at + 1]]

    def put(self, index, area, data):
        """Stores a sample, unless the area is full."""
        if area >= len(self._areas):
            return
        begin = self._words[1 + area]
        end = begin + len(data)
        if end > self.room:
            return
        self._areas[area][begin:end] = data
        self._words[1 + area] = end + 15 & ~15
        slot = (_HEADER >> 3) + 2 * index
        self._words[slot + 1] = len(data)
        self._words[slot] = (area + 1) << 48 | begin

    def poison(self):
        """Does nothing: this store ends with the run."""

    def calls(self, name):
        return {}

    @property
    def calls_room(self):
        return int(available_bytes() * kept_calls.SHARE_OF_MEMORY)


class DiskStore:
    """The same in the feature cache: for all processes and later runs. Raises OSError, and Unkeyable if the
    dataset cannot be identified."""

    def __init__(self, dataset):
        self.count = len(dataset)
        self._disk = disk_cache.DiskCache(identity.of(dataset))
        if self._disk.is_poisoned():
            raise identity.Unkeyable(
                "a sample that an earlier run had kept was different when it was made again"
            )
        self.budget = int(self._disk.free_bytes * _SHARE_OF_MEMORY)
        self.calls_room = self.budget
        self._state_memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._words = memoryview(self._state_memory).cast("Q")

    state = Store.state

    def get(self, index):
        return self._disk.get("sample %d" % index)

    def put(self, index, area, data):
        self._disk.put("sample %d" % index, data)

    def poison(self):
        self._disk.poison()

    def calls(self, name):
        """Stores results of a function within samples, for KeptFunction."""
        return disk_cache.DiskCalls(self._disk, name)


class KeptSamples:
    """Replaces the dataset within one fetcher."""

    def __init__(self, dataset, store, area, say, keep_calls):
        self.dataset, self._store, self._area, self._say, self._keep_calls = (
            dataset,
            store,
            area,
            say,
            keep_calls,
        )
        self._misses = self._hits = self._proved = 0
        self._waiting = []  # samples that will be kept once enough are proved
        self._said = False

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        try:
            kept, seen = self._find_kept(index)
            if kept is not None and seen is None:
                return packing.unpacked(kept)
        except BaseException as failure:
            seen = caught(failure)
        sample = self.dataset[index]
        if seen is not None:
            try:
                if kept is None:
                    self._made(index, sample, seen)
                elif not _is_same(sample, kept):
                    self._store.poison()
                    self._give_up("sample %d was different when it was made again" % index, broken=True)
                else:
                    self._proved = max(self._proved, _PROVED_TWICE)
                    self._takes()
            except BaseException as failure:
                caught(failure)
        return sample

    def _find_kept(self, index):
        """Returns (the kept sample or None, the state before the call or None). A kept sample is
        made again now and then."""
        store = self._store
        if guard.failed or store.state >= _OFF or type(index) is not int or not 0 <= index < store.count:
            return None, None
        kept = store.get(index)
        if kept is not None:
            self._hits += 1
            return kept, _Before() if self._hits % _HITS_PER_PROOF == 1 else None
        self._misses += 1
        twice = self._proved < _PROVED_TWICE or self._misses % _MISSES_PER_PROOF == 0
        return None, _Before(random_states(), kept_calls.held_by(self.dataset) if twice else None)

    def _made(self, index, sample, seen):
        took = now() - seen.begin
        why = drew(seen.drawn)
        try:
            data = None if why else packing.packed(sample)
        except TypeError as error:
            why = str(error)
        if not why and seen.holds is not None:
            why = self._not_worth(took, len(data))
            if why:
                return self._give_up(why)
            changed = sorted(
                name
                for name, what in kept_calls.held_by(self.dataset).items()
                if seen.holds.get(name, self) != what
            )
            if changed and self._misses == 1:
                return None  # it may open files at first
            # A dataset that counts or remembers may return something else the next time, and must not count
            # our own call.
            why = (
                "the dataset changes: %s" % changed[0] if changed else self._another(index, data, seen.drawn)
            )
            self._proved += 1
        if why:
            self._give_up(why, impure=True)
            self._keep_calls(self.dataset)
        elif self._store.state < _OFF:
            self._waiting.append((index, data))
            if self._proved >= _PROVED_TWICE:
                self._keep_waiting()
        return None

    def _another(self, index, data, drawn):
        """Returns why a repeated sample differs from the first one, if it does."""
        try:
            again = packing.packed(self.dataset[index])
        except Exception as error:  # the dataset's own
            pass_on(error)
            return "the same index cannot be asked for twice (%s)" % type(error).__name__
        finally:
            drew_again = drew(drawn)
            restore(drawn)
        return drew_again or ("the same index gives another sample each time" if again != data else None)

    def _keep_waiting(self):
        for index, data in self._waiting:
            self._store.put(index, self._area, data)
        self._waiting = []
        self._takes()

    def _takes(self):
        self._store.state = _KEPT
        if not self._said:
            self._said = True
            self._say("taken")

    def _not_worth(self, took_ns, size):
        if took_ns < _CHEAP_NS:
            return "a sample costs %.0f us, no more than looking it up" % (took_ns / 1000)
        if size * self._store.count > self._store.budget:
            return "the samples would take %.1f GiB, of %.1f GiB that may be used" % (
                size * self._store.count / 2**30,
                self._store.budget / 2**30,
            )
        return None

    def _give_up(self, why, broken=False, impure=False):
        if self._store.state < _OFF or broken:
            self._store.state = _IMPURE if impure else _OFF
            self._say("broken" if broken else "refused", why)


class _Before:
    """The state before the program makes a sample. `holds`: the dataset's numbers and texts, if they are
    inspected."""

    __slots__ = ("begin", "drawn", "holds")

    def __init__(self, drawn=None, holds=None):
        self.drawn, self.holds = drawn, holds
        self.begin = now()


def _is_same(sample, kept):
    try:
        return packing.packed(sample) == bytes(kept)
    except TypeError:
        return False


def _likeness(dataset):
    return type(dataset).__qualname__, len(dataset)


class Caches:
    """The stores of the program's datasets."""

    def __init__(self, say, on_disk):
        self._say, self._on_disk = say, on_disk
        self._stores = {}  # id of a dataset -> (weak reference, store, its numbers)
        self._calls = {}  # id of a dataset -> (weak reference, KeptCalls of this process)
        self._served, self._gone = {}, []  # datasets of one epoch so far, by id; those that had only one
        self._in_workers = False

    def prepare(self, loader):
        """Called before the workers of a loader are started. Reports why there is no cache for it."""
        dataset = loader.dataset
        self._in_workers = self._in_workers or loader.num_workers > 0
        why = self._why_not(loader, dataset)
        if why is not None:
            self._say("refused", why)
            return
        known = self._stores.get(id(dataset))
        if known is not None and known[0]() is dataset:
            self._served.pop(id(dataset), None)
            if known[2] != numbers_of(dataset) and known[1].state < _OFF:
                known[1].state = _OFF
                self._say("broken", "the dataset is changed between epochs")
            return
        if not self._on_disk and self._is_made_anew(dataset):
            lasting = any(
                known[0]() is not None and key not in self._served for key, known in self._stores.items()
            )
            self._say(
                "refused" if lasting else "broken",  # of the other datasets too: none has been used again
                "the program makes its data set anew, and what memory keeps goes with it; cache.features=disk"
                " keeps it",
            )
            return
        try:
            store = DiskStore(dataset) if self._on_disk else Store(len(dataset), loader.num_workers + 1)
        except identity.Unkeyable as why:
            self._say("refused", str(why))
            return
        except (OSError, ValueError, OverflowError, KeyError) as error:
            self._say(
                "refused",
                "%s: %s" % ("there is no cache" if self._on_disk else "no memory could be shared", error),
            )
            return
        self._stores = {key: known for key, known in self._stores.items() if known[0]() is not None}
        self._calls = {key: known for key, known in self._calls.items() if known[0]() is not None}
        self._stores[id(dataset)] = (weakref.ref(dataset), store, numbers_of(dataset))
        self._served[id(dataset)] = weakref.ref(dataset), _likeness(dataset)

    def _is_made_anew(self, dataset):
        """Whether similar datasets existed for one epoch each."""
        for key in [key for key, (there, _) in self._served.items() if there() is None]:
            self._gone.append(self._served.pop(key)[1])
        return self._gone.count(_likeness(dataset)) >= _GONE_AFTER_AN_EPOCH

    @staticmethod
    def _why_not(loader, dataset):

        if not hasattr(type(dataset), "__getitem__") or "Iterable" in type(dataset).__name__:
            return "the dataset gives a stream, not samples by index"
        if not loader._auto_collation:
            return "the loader fetches whole batches"
        if whole_batches.gives_batches(dataset):
            return "the dataset fetches whole batches itself"
        if loader.num_workers and loading.start_method(loader) != "fork":
            return "workers are not forked, so that no memory is shared with them"
        if loader.num_workers and platform.machine() != "x86_64":
            return "sharing memory without locks needs a processor that keeps the order of stores"
        if "numpy" not in sys.modules:
            return "numpy is not there"
        try:
            len(dataset)
            weakref.ref(dataset)
        except Exception as failure:
            pass_on(failure)
            return "the dataset has no length"
        return own_state.why(dataset)

    def adapt(self, fetcher):
        known = self._stores.get(id(fetcher.dataset))
        if known is None or known[0]() is not fetcher.dataset:
            return
        from torch.utils.data import get_worker_info

        worker = get_worker_info()
        area, areas = (0, 1) if worker is None else (worker.id + 1, worker.num_workers + 1)

        def keep_calls(dataset):
            try:
                if id(dataset) not in self._calls:
                    self._calls[id(dataset)] = (
                        weakref.ref(dataset),
                        kept_calls.KeptCalls(dataset, known[1], areas, self._say),
                    )
            except BaseException as failure:
                caught(failure)

        if known[1].state < _OFF:
            fetcher.dataset = KeptSamples(fetcher.dataset, known[1], area, self._say, keep_calls)
        elif known[1].state == _IMPURE:
            keep_calls(fetcher.dataset)

    def kept(self):
        """Whether samples of some dataset, or results within them, are kept; None before that is known, or if
        only workers know."""
        states = [store.state for _, store, _ in self._stores.values()]
        if _KEPT in states or any(calls.taken for _, calls in self._calls.values()):
            return True
        return None if _UNDECIDED in states or self._in_workers else False
