"""Patches of torch.utils.data: loaders, waiting for a batch, and starting workers."""

import mmap
import sys
import threading
import weakref

from _unidle_shim import session
from _unidle_shim.facts import loading, package_loading
from _unidle_shim.host import places
from _unidle_shim.host.guard import caught, value_or_none
from _unidle_shim.host.patching import put
from _unidle_shim.loop.loop import now
from _unidle_shim.loop.short_steps import Patch
from _unidle_shim.patches import sample_makers, short_fetches
from _unidle_shim.samples import batch_sizes
from _unidle_shim.samples import sample_cost as sampling

_get_ident = threading.get_ident
_MOST_LOADERS = 256
_LOOK_EVERY = 15  # a mask: the first batch and every sixteenth after it are inspected more closely


class Loader:
    """A DataLoader of the program, or a Loader of the package unidle (`of_package`)."""

    def __init__(self, number, where, of_package=False):
        self.id, self.where, self.use = number, where, None
        self.proven = False  # some of its batches were used for training
        self.with_gradients = False  # it is used for validation with gradients enabled
        self.of_package = of_package
        self.epochs = self.starts = 0
        self.batches = self.wait_ns = 0
        self.items = None  # of the dataset, in one batch; None if unknown
        self.largest = 0  # the largest batch seen, in samples
        self.measured = self.measured_samples = 0  # batches whose samples were counted, and these
        self.fetched_elsewhere = 0  # batches fetched by a thread that does not train
        self.start_ns = self.start_last_ns = self.start_waited_ns = 0
        self.starting_ns = None  # while workers are being started: ns so far
        self.begun_ns = 0  # when its newest iterator was made
        self.iterated_where = None  # the line that made one of its iterators
        self.slot = None  # shared with the first worker: the time of its first batch
        self.making = None if of_package else sampling.Samples(number)  # samples made in this process
        self.samples = self.making or package_loading.Costs(self)
        self.facts = None  # properties read by inspection, kept when the loader is gone
        self.source = None  # a source of the package that could replace its data set
        self.recognition = None  # distinguishes loaders that are made at the same line
        self.real = None  # weak reference to the DataLoader
        self.dataset = None  # weak reference to its data set, if it supports one
        self.dataset_anew = False  # a successor had another data set

    def now_is(self, real):
        """`real` was made, as the first one or replacing one that is gone."""
        before = self.dataset
        self.real, self.facts = weakref.ref(real), None
        self.items = loading.items_per_batch(real)
        try:
            self.dataset = weakref.ref(real.dataset)
        except (TypeError, AttributeError):
            self.dataset = None  # a list, or a loader of the package
            return
        self.dataset_anew = self.dataset_anew or (before is not None and before() is not real.dataset)

    def size_of(self, batch):
        """The number of samples in a batch of this loader."""
        size = batch_sizes.samples_of(batch, self.items)
        self.measured += 1
        self.measured_samples += size
        if size > self.largest:
            self.largest = size
        return size


def install(state):
    from torch.utils.data import dataloader

    state.take_over = lambda: take_over(state)
    patch_loader(
        state,
        dataloader.DataLoader,
        state.actuators.loader_options,
        _starts_workers,
    )
    state.fetches = [patch_iterator(state, dataloader._BaseDataLoaderIter)]
    sample_makers.install(state)


def loader_of(state, real):
    # Not a dictionary with weak keys: exceptions that signal handlers raise while it drops a key are printed
    # and lost.
    for known in state.all_loaders:
        if known.real() is real:
            return known
    of_package = not isinstance(real, state.torch.utils.data.DataLoader)
    where = _place_of_original(state, real, sys._getframe(2)) or places.here(3)
    known = _successor(state, where, _likeness(real), of_package)
    known.now_is(real)
    return known


def _place_of_original(state, real, maker):
    """Where the program made the loader from which a package makes this one, as accelerate's prepare() does;
    None if there is no such loader, or several. `maker`: the frame that makes this one."""
    if places.is_own(maker.f_code):
        return None
    originals = [(known, known.real()) for known in state.all_loaders]
    found = {
        known.where for known, loader in originals if loader is not None and loader.dataset is real.dataset
    }
    return found.pop() if len(found) == 1 else None


def _likeness(real):
    return (
        type(real).__name__,
        type(real.dataset).__name__,
        real.batch_size,
        getattr(real, "num_workers", None),
        type(getattr(real, "sampler", None)).__name__,
    )


def _starts_workers(real):
    return real.num_workers > 0 and getattr(real, "_iterator", None) is None


def _successor(state, where, recognition, of_package):
    """Returns the earlier Loader that this DataLoader continues, if that one is gone: a program may make a
    new loader in each epoch. It is recognised by the line that makes it. A framework makes all loaders at one
    line, so their properties must match as well."""
    for loader in state.all_loaders:
        if (
            loader.where == where
            and where is not None
            and loader.recognition == recognition
            and loader.real() is None
        ):
            return loader
    # The program keeps making new loaders: one that is gone passes on its counts.
    if len(state.all_loaders) >= _MOST_LOADERS:
        gone = [
            loader
            for loader in state.all_loaders
            if loader.real() is None and loader.of_package == of_package
        ]
        for loader in [loader for loader in gone if loader.recognition == recognition] or gone:
            return loader
    loader = Loader(len(state.all_loaders), where, of_package)
    loader.recognition = recognition
    state.all_loaders.append(loader)
    return loader


def patch_loader(state, DataLoader, options, starts_workers):
    """options(loader, args, kwargs) returns its keyword arguments with the requested ones added.
    `starts_workers`: whether the next iterator of a loader starts processes."""
    original_init, original_iter = DataLoader.__init__, DataLoader.__iter__

    def init(self, *args, **kwargs):
        try:
            if _get_ident() == state.thread:
                kwargs = options(self, args, kwargs)
        except BaseException as failure:
            caught(failure)
        original_init(self, *args, **kwargs)
        try:
            if not state.trains or _get_ident() == state.thread:
                loader_of(state, self)
        except BaseException as failure:
            caught(failure)

    def iterate(self):
        loop = state.loop
        if _get_ident() != state.thread:
            return made_elsewhere(self)
        if loop is not None and loop.within():
            return original_iter(self)
        try:
            loop = session.followed()
            if loop is not None:
                loop.look_up()
                loader = loader_of(state, self)
                if not loader.epochs:
                    state.module_classes.watch_all(loop.steps)
                if not loader.epochs & (loader.epochs - 1):
                    loader.iterated_where = places.here()
                t0 = now()
                starts = starts_workers(self)
                loop.pass_begins(t0)
                loop.fetch_begins(
                    loader, t0, places.call_of(sys._getframe(1)) if loader.use == "train" else None
                )
                if starts:
                    loader.slot = _shared_slot(self)
                    state.starting = loader
                before, loop.inside = loop.total, True
        except BaseException as failure:
            loop = caught(failure)
        if loop is None:
            return original_iter(self)
        try:
            iterator = original_iter(self)
        except BaseException:
            loop.inside = False
            state.starting = None
            raise
        try:
            t1 = now()
            loop.inside = False
            state.starting = None
            own = t1 - t0 - (loop.total - before)
            loop.total += own
            loader.epochs += 1
            loader.begun_ns = t1
            loader.wait_ns += own
            loader.starting_ns = own if starts else None
            loop.fetch_ends(loader, t0, t1, own, 0, False)
            iterator._unidle = loader
            if loader.facts is None:  # now: a temporary DataLoader is gone before its first batch
                loader.facts = value_or_none(_facts_of, state, loop, loader, self)
        except BaseException as failure:
            caught(failure)
        return iterator

    def made_elsewhere(real):
        """An iterator was made in a thread that is not followed. That thread may turn out to be the one that
        trains, see session.adopt."""
        iterator = original_iter(real)
        try:
            loader = loader_of(state, real)
            if loader.facts is None:  # now: a temporary DataLoader is gone before its first batch
                loader.facts = value_or_none(loading.loader_facts, state.torch, loader)
            iterator._unidle = loader
            if state.trains:
                loader.epochs += 1
            else:
                state.iterator_from_other_thread = _get_ident(), loader, weakref.ref(iterator)
        except BaseException as failure:
            caught(failure)
        return iterator

    put(DataLoader, "__init__", init)
    put(DataLoader, "__iter__", iterate)


def take_over(state):
    """Follows the iterator that the training thread had made before it was known to train. Its first batch
    was missed."""
    (thread, loader, iterator), state.iterator_from_other_thread = state.iterator_from_other_thread, None
    iterator = iterator()
    if thread == state.thread and iterator is not None:
        loader.epochs += 1
        loader.fetched_elsewhere, state.fetched_elsewhere = 0, False


def _facts_of(state, loop, loader, real):
    """The properties of the loader, read once, when it is first iterated over."""
    facts = loading.loader_facts(state.torch, loader)
    loop.inside = True  # queries of the dataset are ours
    try:
        loading.look_at_samples(facts, real)
        loader.source = loader.source or loading.source_of(facts, loader, real)
    finally:
        loop.inside = False
    return facts


def _shared_slot(real):
    context = getattr(real, "multiprocessing_context", None)
    method = context.get_start_method() if context is not None else _start_method()
    return mmap.mmap(-1, mmap.PAGESIZE) if method == "fork" else None


def _start_method():
    multiprocessing = sys.modules.get("multiprocessing")
    return (
        multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_context().get_start_method()
    )


def patch_iterator(state, Iterator):
    """The patch of its __next__, which is replaced by a shorter one while steps are only marked."""
    original = Iterator.__next__

    def following(self):
        marking = state.marking
        if marking is not None and id(self) == marking.iterator:
            return resumed(marking, self)(self)
        loop = state.loop
        if loop is None or _get_ident() != state.thread:
            return fetched_elsewhere(self)
        if loop.within():
            return original(self)
        try:
            t0 = now()
            loader = self.__dict__.get("_unidle")
            if loader is not None:
                if marking is not None:
                    loop.look_up()
                timed = loop.own_cost.on
                loop.iterator = id(self)
                loop.fetch_begins(loader, t0, places.call_of(sys._getframe(1)))
                before, loop.inside = loop.total, True
                state.samples = loader.making
                t1 = now()  # our own part, including the last step's events, is not waiting
        except BaseException as failure:
            loader = caught(failure)
        if loader is None:
            return original(self)
        try:
            batch = original(self)
        except StopIteration:
            ended(loop, loader, self, t1, before)
            raise
        except BaseException as error:
            loop.inside, state.samples = False, None
            state.facts.failed(error)
            raise
        try:
            t2 = now()
            loop.inside, state.samples = False, None
            own = t2 - t1 - (loop.total - before)
            loop.total = before + t2 - t1
            loader.wait_ns += own
            loader.batches = batches = loader.batches + 1
            if loader.of_package:
                loader.samples.look(self.stream, t2)
            if loader.starting_ns is not None:
                _started(loader, own)
            size = value_or_none(loader.size_of, batch) or 0
            loop.fetch_ends(loader, t1, t2, own, size, True)
            if batches & _LOOK_EVERY == 1:
                value_or_none(state.facts.batch_seen, loader, batch)
            if timed:
                loop.own_cost.ns += t1 - t0 + now() - t2
        except BaseException as failure:
            caught(failure)
        return batch

    def fetched_elsewhere(iterator):
        """A batch fetched by a thread that does not train; usually it passes batches to the training
        thread."""
        batch = original(iterator)
        try:
            loader = iterator.__dict__.get("_unidle")
            if loader is not None and state.role == "train" and _get_ident() != state.thread:
                state.fetched_elsewhere = True
                loader.batches += 1
                loader.fetched_elsewhere += 1
                value_or_none(loader.size_of, batch)
        except BaseException as failure:
            caught(failure)
        return batch

    def resumed(marking, iterator):
        """Returns the function that fetches the next batch while steps are only marked."""
        try:
            marking.first_fetch(iterator)
            return marking.fetch
        except BaseException as failure:
            caught(failure)
        return original

    def shorter(marking):
        return marking.fetch or short_fetches.shorter(state, marking, original, following, over)

    def over(loop, iterator, t0, error):
        try:
            before = loop.total
            loop.look_up()
            loader = iterator._unidle
            if isinstance(error, StopIteration):
                loop.fetch_begins(loader, t0)
                ended(loop, loader, iterator, t0, before)
            else:
                state.facts.failed(error)
        except BaseException as failure:
            caught(failure)

    def ended(loop, loader, iterator, t0, before):
        """The epoch is over. This call's time was spent on shutting down workers."""
        t1 = now()
        try:
            loop.inside, state.samples = False, None
            own = t1 - t0 - (loop.total - before)
            loop.total = before + t1 - t0
            loader.wait_ns += own
            if loader.use == "train" and not loader.epochs & (loader.epochs - 1):
                state.module_classes.watch_all(loop.steps)
            if (
                loader.starts
                and getattr(iterator, "_num_workers", 0)
                and not getattr(iterator, "_persistent_workers", False)
            ):
                loader.start_ns += own
                loader.start_waited_ns += own
            loop.fetch_ends(loader, t0, t1, own, 0, False)
            if loader.of_package:
                loader.samples.ask(iterator.stream)
        except BaseException as failure:
            caught(failure)

    put(Iterator, "__next__", following)
    return Patch(Iterator, "__next__", following, shorter)


def _started(loader, own_ns):
    """The cost of starting workers: from iter() to the first batch, less the time to make that batch."""
    spent = loader.starting_ns + own_ns
    loader.starting_ns = None
    if loader.slot is not None:
        spent -= min(own_ns, int.from_bytes(loader.slot[0:8], "little"))
        loader.slot = None
    loader.starts += 1
    loader.start_ns += spent
    loader.start_waited_ns += spent
    loader.start_last_ns = spent
