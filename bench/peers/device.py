"""GPU optimisations of a careful Python user: pinned batches copied ahead, a captured step."""

import os

import torch
from torch.utils.data import DataLoader, RandomSampler

WORKERS = min(8, max(1, len(os.sched_getaffinity(0)) // 2))  # for a loader that a GPU waits for


def on_gpu(args):
    return torch.device(args.device).type == "cuda"


def tuned_on_gpu(args):
    return args.mode == "tuned" and on_gpu(args)


def allow_fast_kernels(args):
    """Enables TF32 for fp32 operations and cuDNN's fastest algorithms, as the engine's tuned
    configurations."""
    if tuned_on_gpu(args):
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True


def autocast(args):
    return torch.autocast(torch.device(args.device).type, torch.bfloat16, enabled=args.amp == "bf16")


def wait(args):
    if on_gpu(args):
        torch.cuda.synchronize()


def workers(args):
    if args.workers >= 0:
        return args.workers
    return WORKERS if tuned_on_gpu(args) else 0


def loading(args):
    """Returns a program's DataLoader options: worker processes, and pinned batches for a GPU."""
    count, gpu = workers(args), tuned_on_gpu(args)
    ahead = {"prefetch_factor": 4} if gpu and count else {}
    return {"num_workers": count, "persistent_workers": count > 0, "pin_memory": gpu, **ahead}


def shuffled(dataset, args):
    """Yields the batches of a DataLoader. On a GPU epochs are joined without a pause, even within a batch:
    at the end of an epoch the worker processes would be idle."""
    generator = torch.Generator().manual_seed(args.seed)
    order = {"shuffle": True}
    if tuned_on_gpu(args):
        order = {"sampler": RandomSampler(dataset, num_samples=1 << 30, generator=generator)}
    return DataLoader(dataset, args.batch, drop_last=True, generator=generator, **order, **loading(args))


def moved(batches, args):
    """Yields batches on the model's device: one by one as an untuned program does, or copied ahead."""
    if not on_gpu(args):
        return iter(batches)
    if tuned_on_gpu(args):
        return Ahead(batches)
    return (tuple(each.to(args.device) for each in batch) for batch in batches)


class Ahead:
    """Moves pinned batches to the device: copies the next one on a separate stream during the step."""

    def __init__(self, batches):
        self.batches, self.stream, self.coming = iter(batches), torch.cuda.Stream(), None

    def __iter__(self):
        return self

    def copy(self):
        batch = next(self.batches)
        with torch.cuda.stream(self.stream):
            self.coming = tuple(each.to("cuda", non_blocking=True) for each in batch)

    def __next__(self):
        if self.coming is None:
            self.copy()
        current = torch.cuda.current_stream()
        current.wait_stream(self.stream)
        batch = self.coming
        for each in batch:
            each.record_stream(current)
        self.copy()
        return batch


class Captured:
    """A step as CUDA graphs, one per batch shape, captured by torch.cuda.graph: `once(batch)` is the whole
    step and returns its loss."""

    def __init__(self, once):
        self.once, self.graphs, self.pool = once, {}, None

    def __call__(self, batch):
        shapes = tuple(each.shape for each in batch)
        if shapes not in self.graphs:
            self.graphs[shapes] = self.capture(batch)
        graph, static, loss = self.graphs[shapes]
        torch._foreach_copy_(static, list(batch))
        graph.replay()
        return loss.clone()

    def capture(self, batch):
        static = [each.clone() for each in batch]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.once(static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # The loader's thread pins batches meanwhile, which a global capture forbids.
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            loss = self.once(static)
        self.pool = graph.pool()
        return graph, static, loss


class Average:
    """Averages a model's weights with few launches and without synchronizing: AveragedModel copies its
    counter to the device in each step."""

    def __init__(self, model, average, decay):
        self.average, self.rest, self.begun = average, 1 - decay, False
        self.weights = [list(one.parameters()) for one in (average, model)]
        self.buffers = [list(one.buffers()) for one in (average, model)]

    @torch.no_grad()
    def update(self):
        ours, theirs = self.weights
        if self.begun:
            torch._foreach_lerp_(ours, theirs, self.rest)
        else:
            torch._foreach_copy_(ours, theirs)
        torch._foreach_copy_(*self.buffers)
        self.begun = True
