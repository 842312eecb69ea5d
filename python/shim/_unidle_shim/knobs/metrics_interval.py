"""metrics.interval at run time: `.item()` of a tensor on the device returns at once, with a deferred number.

A copy to pinned memory is queued behind what computes the value, and the program goes on. Sums and products
of such numbers are on their way too; whatever else is done with one waits for it and is done with the float
that it stands for, so that the program prints what it would print anyway. The numbers are given out only
where the program's source shows that they are logged and nothing else (source/only_logged.py): C code that
asks for the type of a number would not take them."""

import inspect
import numbers
import operator
import os
import sys
import threading
from collections import deque

from _unidle_shim.host import places
from _unidle_shim.host.guard import caught
from _unidle_shim.loop.loop import now
from _unidle_shim.source import only_logged

KNOB = "metrics.interval"
_ON_A_CPU = "on a CPU nothing is waited for"


class Later:
    """A float or an int that is on its way. Reading it waits; + - * and division by a plain number do not."""

    __slots__ = ("_find", "_queue", "_value")

    def __init__(self, queue, find):
        self._queue, self._find, self._value = queue, find, None

    def _settled(self):
        if self._value is None:
            self._queue.settle(self)
        return self._value

    def __float__(self):
        return float(self._settled())

    def __index__(self):
        return operator.index(self._settled())

    def __getattr__(self, name):
        return getattr(self._settled(), name)

    def __reduce__(self):
        return type(self._settled()), (self._settled(),)

    def __array__(self, dtype=None, copy=None):
        import numpy

        return numpy.array(self._settled(), dtype=dtype)


def _stays_later(name, swapped):
    operation = getattr(operator, name)

    def method(self, other):
        left, right = (other, self) if swapped else (self, other)
        lazy = type(other) in (float, int) and not (name == "truediv" and (swapped or other == 0))
        if self._value is not None or not (lazy or type(other) is Later and name != "truediv"):
            return operation(_plain(left), _plain(right))
        return self._queue.put(lambda: operation(_plain(left), _plain(right)))

    return method


def _waits(name):
    def method(self, *others):
        return getattr(self._settled(), name)(*map(_plain, others))

    return method


def _plain(value):
    return value._settled() if type(value) is Later else value


for _name in ("add", "sub", "mul", "truediv"):
    setattr(Later, "__%s__" % _name, _stays_later(_name, False))
    setattr(Later, "__r%s__" % _name, _stays_later(_name, True))
for _name in (
    "eq ne lt le gt ge hash bool int str repr format round trunc floor ceil neg pos abs "
    "pow rpow mod rmod floordiv rfloordiv divmod rdivmod"
).split():
    setattr(Later, "__%s__" % _name, _waits("__%s__" % _name))
numbers.Real.register(Later)


class Queue:
    """Numbers on their way, oldest first: what one is computed of comes before it. Any thread may read
    one."""

    def __init__(self):
        self.most = 0  # copies that may be on their way
        self.copies = 0
        self.waiting = deque()
        self.lock = threading.RLock()

    def put(self, find, arrived=None):
        """`find` gives the value; `arrived` says of a copy, without waiting, whether it is there."""
        number = Later(self, find)
        with self.lock:
            self.waiting.append((number, arrived))
            self.copies += arrived is not None
        return number

    def collect(self):
        """What has arrived, and what has been on its way for too long."""
        with self.lock:
            while self.waiting:
                arrived = self.waiting[0][1]
                if arrived is not None and self.copies < self.most and not arrived():
                    break
                self._settle_first()

    def settle(self, number):
        with self.lock:
            while number._value is None and self.waiting:
                self._settle_first()
            if number._value is None:  # it failed before
                number._value = number._find()

    def settle_all(self):
        with self.lock:
            while self.waiting:
                self._settle_first()

    def _settle_first(self):
        number, arrived = self.waiting.popleft()
        self.copies -= arrived is not None
        number._value, number._find = number._find(), None


class CudaCopies:
    """One element from a CUDA device, and how it is known to have arrived."""

    kind = "cuda"

    def __init__(self, torch):
        # What these wait for is told by Reads, not by the patches of torch.Tensor.
        base = torch.Tensor.__mro__[1]  # torch._C.TensorBase, _TensorBase in older torch
        self.to, self.item = base.to, base.item
        self.Event, self.synchronize = torch.cuda.Event, inspect.unwrap(torch.cuda.Event.synchronize)
        self.stream = torch.cuda.current_stream
        self.unused = {}  # device -> events; one cannot be recorded on another device again

    def begin(self, tensor):
        # To pinned memory, because the copy need not be waited for; behind what computes the value, in its
        # stream.
        host = self.to(tensor.detach(), "cpu", non_blocking=True)
        unused = self.unused.setdefault(tensor.device, [])
        event = unused.pop() if unused else self.Event()
        event.record(self.stream(tensor.device))
        return host, event, unused

    def end(self, host, event, unused):
        self.synchronize(event)
        unused.append(event)
        return self.item(host)


class Reads:
    """Decides of each `.item()` of the program whether it is served later."""

    def __init__(self, state, actuators, interval, copies):
        self.state, self.actuators, self.copies = state, actuators, copies
        self.interval = interval
        self.queue = Queue()
        torch = state.torch
        self.numbers = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32)
        self.known = {}  # (code, offset) -> None: later; otherwise why not
        self.said = False  # that it is taken
        state.at_finish.append(self.finish)
        os.register_at_fork(before=self.finish)

    def read(self, tensor, frame):
        """A number for tensor.item(), or None: then it is read as ever."""
        if tensor.device.type != self.copies.kind or tensor.dtype not in self.numbers or tensor.numel() != 1:
            return None
        place = frame.f_code, frame.f_lasti
        if place not in self.known:
            self._judge(place, frame)
        if self.known[place] is not None:
            return None
        self.queue.collect()
        copy = self.copies.begin(tensor)
        loss = self._loss(tensor)
        if not self.said:
            self.said = True
            self.actuators.say(KNOB, self.interval, "taken", None, self.interval)
        return self.queue.put(lambda: self._arrived(copy, loss), copy[1].query)

    def _judge(self, place, frame):
        self.known[place] = why = only_logged.why_not(frame)
        if why is None:
            self.queue.most += self.interval
        elif places.is_own(frame.f_code):
            where = "%s:%d" % (places.short(frame.f_code.co_filename), places.line_of(frame))
            self.actuators.say(KNOB, self.interval, "refused-in-part", "%s: %s" % (where, why))

    def _loss(self, tensor):
        """(step, samples) where that is the loss of the step."""
        step = self.state.waits.step_of_loss(tensor)
        return None if step is None else (step, self.state.loop.samples)

    def _arrived(self, copy, loss):
        t0, there = now(), copy[1].query()
        value = self.copies.end(*copy)
        try:
            loop, t1 = self.state.loop, now()
            if loop is not None and self.state.thread == threading.get_ident():
                if not there:
                    self.state.waits.take("item", t0, t1, t1 - t0, True, sys._getframe(1))
                if loss is not None:
                    loop.loss_was_read(*loss, value, t1)
        except BaseException as failure:
            caught(failure)
        return value

    def finish(self):
        try:
            self.queue.settle_all()
        except (
            BaseException
        ) as failure:  # the device's own; the program meets it where it asks the device next
            caught(failure)


def install(state, actuators, asked):
    """None where nothing can be served later; then it is said why."""
    try:
        interval = int(asked)
    except (TypeError, ValueError):
        interval = 0
    why = "a whole number is expected" if interval < 1 else None
    if why is None and not state.has_device:
        why = _ON_A_CPU
    if why is None and interval > 1:
        return Reads(state, actuators, interval, CudaCopies(state.torch))
    if why is not None:
        actuators.say(KNOB, asked, "ignored" if why is _ON_A_CPU else "refused", why)
    return None
