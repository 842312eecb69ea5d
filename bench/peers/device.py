"""What a careful Python user does for a GPU: batches that are pinned and copied ahead, a captured step."""

import os

import torch
from torch.utils.data import DataLoader, RandomSampler

WORKERS = min(8, max(1, len(os.sched_getaffinity(0)) // 2))  # of a loader that a GPU waits for


def on_gpu(args):
    return torch.device(args.device).type == "cuda"


def tuned_on_gpu(args):
    return args.mode == "tuned" and on_gpu(args)


def allow_fast_kernels(args):
    """TF32 for what is left in fp32, and cuDNN's fastest algorithms: as the engine's tuned configurations."""
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
    """How the DataLoader of a program works: in processes of its own, and for a GPU with pinned batches."""
    count, gpu = workers(args), tuned_on_gpu(args)
    ahead = {"prefetch_factor": 4} if gpu and count else {}
    return {"num_workers": count, "persistent_workers": count > 0, "pin_memory": gpu, **ahead}


def shuffled(dataset, args):
    """Batches of a DataLoader. For a GPU epochs follow each other without a pause, within a batch too: at the
    end of an epoch the loader's processes have nothing to do."""
    generator = torch.Generator().manual_seed(args.seed)
    order = {"shuffle": True}
    if tuned_on_gpu(args):
        order = {"sampler": RandomSampler(dataset, num_samples=1 << 30, generator=generator)}
    return DataLoader(dataset, args.batch, drop_last=True, generator=generator, **order, **loading(args))


def moved(batches, args):
    """The batches where the model is: one by one as a program does that was not tuned, or ahead."""
    if not on_gpu(args):
        return iter(batches)
    if tuned_on_gpu(args):
        return Ahead(batches)
    return (tuple(each.to(args.device) for each in batch) for batch in batches)


class Ahead:
    """Pinned batches on the device: the next one is copied in a stream of its own while the step computes."""

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
    """A step as CUDA graphs, one for each shape of batch, captured by torch.cuda.graph: `once(batch)` is the
    whole step and gives its loss."""

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
        # The loader pins batches meanwhile, in a thread of its own, which a global capture forbids.
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            loss = self.once(static)
        self.pool = graph.pool()
        return graph, static, loss


class Average:
    """The average of a model's weights, in few launches and without a wait: AveragedModel copies its counter
    to the device in each step."""

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
