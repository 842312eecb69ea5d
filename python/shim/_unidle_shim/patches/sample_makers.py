"""Patches of torch.utils.data: making samples, in the training process and in workers."""

import threading

from _unidle_shim import session
from _unidle_shim.host.guard import caught
from _unidle_shim.host.patching import put
from _unidle_shim.loop.short_steps import Patch
from _unidle_shim.samples import sample_cost

_get_ident = threading.get_ident


def install(state):
    from torch.utils.data._utils import fetch, worker

    state.makers = [
        _patch_fetcher(state, fetcher)
        for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher)
    ]
    _patch_worker(state, worker)


def _patch_fetcher(state, Fetcher):
    original = Fetcher.fetch

    def fetch(self, index):
        mine = state.samples  # a worker's, or those of the loader in use
        if mine is None or _get_ident() != state.thread:
            return original(self, index)
        return sample_cost.fetch(original, self, index, mine, state)

    put(Fetcher, "fetch", fetch)
    return Patch(Fetcher, "fetch", fetch, lambda marking: original)


def _patch_worker(state, worker):
    original = worker._worker_loop

    def _worker_loop(*args, **kwargs):
        slot = None
        try:
            starting, state.starting = state.starting, None
            slot = starting.slot if starting is not None else None
            worker_id, workers = (
                args[10:12]
                if len(args) > 11 and isinstance(args[10], int) and isinstance(args[11], int)
                else (-1, 1)
            )
            _begin_worker(
                state, starting.id if starting is not None else 0, slot if worker_id == 0 else None, workers
            )
        except BaseException as failure:
            caught(failure)
        try:
            return original(*args, **kwargs)
        finally:
            session.finish()

    put(worker, "_worker_loop", _worker_loop)


def _begin_worker(state, loader_id, slot, workers):
    state.thread = _get_ident()
    if not session.observe_worker(workers):
        return
    state.samples = sample_cost.Samples(loader_id)
    state.samples.slot = slot
