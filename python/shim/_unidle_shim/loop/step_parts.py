"""The times and counts of one step of the training loop."""

# Fields to which later parts of the same step add.
_SUMS = (
    "input",
    "transfer",
    "forward",
    "backward",
    "optimizer",
    "sync",
    "syncs",
    "log",
    "flush",
    "fetches",
    "backwards",
    "repeated",
    "samples",
    "forwards",
)
_FEWEST_SKIPPED = 16  # a prefetcher fetches fewer batches before the first step


class FirstFetches:
    """The batches fetched before the first step. A program that goes on after an interruption may read its
    loader forward to the place where it stopped: these batches are not trained."""

    def __init__(self):
        self.count = 0
        self.whole = False  # the loader came to its end: its batches may be kept for later
        self.newest = None  # (begin, own ns) of the newest fetch
        self.skipped = None  # (batches, ns)

    def add(self, t0, own_ns, got):
        self.count += got
        self.whole = self.whole or (self.count > 0 and not got)  # making an iterator gives no batch either
        if got:
            self.newest = t0, own_ns

    def leave_out(self, parts):
        """The first step begins with the batch that it trains on."""
        count = self.count - parts.fetches
        if self.whole or parts.fetches != 1 or count < _FEWEST_SKIPPED or self.newest is None:
            return
        begin, own_ns = self.newest
        self.skipped = count, begin - parts.begin
        parts.begin, parts.input = begin, own_ns


class Parts:
    """One step, as far as it is known. Times in ns."""

    __slots__ = (
        *_SUMS,
        "begin",
        "end",
        "forward_samples",
        "loss",
        "losses",
        "optimizers",
        "last",
        "fresh",
        "rare",
        "incomplete",
        "place",
        "most_micro",
        "newest",
        "looked",
    )

    def __init__(self, begin):
        self.begin = self.last = begin
        self.end = self.input = self.transfer = 0
        self.forward = self.backward = self.optimizer = 0
        self.sync = self.syncs = self.log = self.flush = 0
        self.fetches = self.backwards = self.samples = self.forward_samples = self.forwards = 0
        self.repeated = 0  # of the backward passes: those that directly follow another
        self.loss, self.losses = 0.0, 0
        self.optimizers = ()
        self.rare = False  # some of transfer, sync, log and flush is not 0
        self.fresh = True  # the next batch begins a micro-batch
        self.incomplete = False  # some of it was only marked: its forward and backward passes are unknown
        self.place = None  # where its first batch was requested
        self.most_micro = 0  # micro-batches for one of its optimisers, if each has its own batches
        self.newest = 0  # samples of its newest batch
        # id of the iterator of a batch that a model in training mode only looked at, without gradients
        self.looked = None

    def copy(self):
        twin = Parts(self.begin)
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin

    def is_untrained(self):
        """Whether no gradients were asked for yet."""
        return not (self.forwards or self.backwards or self.optimizers)

    def take(self, samples):
        """Adds the step's next batch."""
        self.fetches += 1
        self.samples += samples
        self.newest = samples

    def take_instead(self, samples):
        """Adds a batch in place of the newest, which was not used."""
        self.samples += samples - self.newest
        self.newest = samples

    def drop(self):
        """A pass over its newest batch has failed. If the program retries with parts of that batch, their
        forward passes count the samples."""
        if self.fetches > self.backwards or (self.incomplete and self.fetches):
            self.fetches -= 1
            self.backwards = min(self.backwards, self.fetches)
            self.take_instead(0)
        self.forward_samples = 0
        self.fresh = True

    def leave_out_negatives(self):
        """Sets times to 0 that are negative because a clock went back."""
        self.begin, self.end = max(0, self.begin), max(0, self.begin, self.end)
        for name in _SUMS:
            setattr(self, name, max(0, getattr(self, name)))

    def absorb(self, later):
        """Merges `later`, which turned out to belong to the same step."""
        self.most_micro = max(self.micro_batches(), later.micro_batches())
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.optimizers += later.optimizers
        self.last, self.fresh, self.rare, self.incomplete = (
            later.last,
            later.fresh,
            self.rare or later.rare,
            self.incomplete or later.incomplete,
        )

    def micro_batches(self):
        """Micro-batches for one of the optimisers."""
        if self.most_micro:
            return self.most_micro
        if self.fetches:
            return self.fetches
        each, passes = len(self.optimizers), max(0, self.backwards - self.repeated)
        return passes if each == 1 and passes else max(1, round(passes / max(1, each)))
