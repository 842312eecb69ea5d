"""The background thread: samples the stack of the training thread, and writes notes now and then."""

import _thread
import linecache
import os
import re
import sys
import threading
import time

from _unidle_shim.facts import (
    affinity,
    attention,
    call_stacks,
    losses,
    module_methods,
    other_threads,
    python_loops,
)
from _unidle_shim.host import native, places, startup, threads
from _unidle_shim.host.guard import off
from _unidle_shim.loop.loop import (
    AFTER_FORWARD,
    AFTER_STEP,
    INPUT_PHASE,
    STARTUP_PHASE,
    TRAIN_PHASE,
    VALIDATE_PHASE,
    now,
)

_RATE_HZ = 20
_SLOW_RATE_HZ = 5
_WORKERS_RATE_HZ = 80  # for all workers of a loader together: there may be hundreds
_FIRST_NOTES_S = 1.0
_NOTES_S, _MAX_NOTES_S, _NOTES_GROWTH = 2.0, 60.0, 1.3
_MAX_BUSY = 0.002  # share of wall time that this thread may use before it samples less often
_AT_FIRST_S = 0.02  # what it may use besides, for what it does once: classes and source lines of each file
_FIRST_PACE_S = 5.0  # before that, looks are evenly spaced: phases of a short run are compared by them
_PACE_S, _PACE = 1.0, 1.5  # how often the pause between two looks changes, and by which factor
_LONGEST_SWITCH_S = 0.005  # Python's own; a program that sets a longer one wants fewer switches
_INTERRUPTS_MAIN_ONLY = sys.version_info >= (3, 14)  # see python/native/prompt_lock.cpp
_MAX_PLACES = 2000
_TOP = 10
_OTHERS_WORK = 0.1  # of the time: threads that use more of a CPU may hold Python's lock
_LEAVES_S = 30.0  # how long the end of a process waits for this thread: it may be starved
_READS = re.compile(
    r"\[[^\[\]]+\]|\b(read|load|open|next|randperm|randint|stack|gather|index_select|from_numpy|memmap|choice"
    r"|permutation|collate|decode)\w*\s*\("
)
# The same without mere indexing, which metrics of the step before and losses do as well.
_FETCHES = re.compile(
    r"\b(read|load|open|next|randperm|randint|from_numpy|memmap|collate|decode|\w*batch)\w*\s*\("
)
_WRITES = re.compile(r"""\bopen\s*\(.*?,\s*(?:mode\s*=\s*)?["'][wax][bt+]*["']""")  # no input
_GAP_HITS = 5
BETWEEN = "between"  # the phase of lines outside the model, its gradients, the optimiser and the loader
CHECKPOINT, LOGGING = "checkpoint", "logging"
INDICES = "indices"  # of those of a sampler, within the wait for input
EXCHANGE = "exchange"  # of those within a call of torch.distributed
AFTER = "after"  # the phase of lines that run after the last step
_TORCH = os.path.join(os.sep, "torch", "")
_OPTIMIZERS = os.path.join("torch", "optim", "")
_AUTOGRAD = os.path.join("torch", "autograd", "")
# Code of torch that a stack contains while the model, autograd or an optimiser works. Some programs call
# forward() or another method of the model themselves.
_WORKS = (
    (module_methods.FILE, module_methods.CALLS),
    (os.path.join("torch", "autograd", "graph.py"), None),
    (os.path.join("torch", "autograd", "__init__.py"), None),
    (_OPTIMIZERS, None),
    (os.path.join("torch", "utils", "data", ""), None),
)
_COLLECTIVES = os.path.join("torch", "distributed", "distributed_c10d.py")
_METHOD = "method"  # of a model
_LOGS = os.path.join(os.path.dirname(linecache.__file__), "logging", "")


def _is_read(pattern, text):
    return bool(pattern.search(_WRITES.sub("", text)))


def _known_work(code):
    name = code.co_filename
    if code.co_name == "forward" or any(
        file in name and (names is None or code.co_name in names) for file, names in _WORKS
    ):
        return TRAIN_PHASE
    return LOGGING if name.startswith(_LOGS) else None


def _outside_of_modules(stack):
    """The part of the stack that calls the model: what evaluates a model says more than its inside."""
    depth = module_methods.outermost_call(stack)
    return stack if depth is None else stack[depth + 1 :]


def _is_closure(code):
    """Whether code that torch.optim calls is a closure, which computes the gradients: neither torch's own nor
    the step of an optimiser that the program defines."""
    return _TORCH not in code.co_filename and code.co_name != "step"


def _phase_between(stack):
    return EXCHANGE if any(code.co_filename.endswith(_COLLECTIVES) for code, _ in stack) else BETWEEN


class Background:
    def __init__(self, state, workers=1):
        """`workers`: number of processes that sample like this one."""
        self.state = state
        self.affinity = None  # of the followed thread
        self.rate_hz = min(_RATE_HZ, _WORKERS_RATE_HZ / max(1, workers))
        self.working = threading.Lock()  # held by the thread while it looks or writes, and after stop()
        self.stopped = False
        self.busy_s = 0.0
        self.thinned = False
        self.hits = {}  # (phase, line or None, function, caller or None) -> stack samples
        self.totals = {}  # phase -> stack samples
        # The same as hits, since the last finished step: they belong to the next one, or to none.
        self.unfinished, self.finished_steps = {}, 0
        self.gap_hits, self.gap_reads = [0, 0, 0], [0, 0, 0]  # indexed by the kind of call before the gap
        self.known_work = {}  # code -> _known_work(it)
        self.methods = module_methods.ModuleMethods()
        self.reads = {}  # (file, line, works on a batch) -> whether the line looks like fetching data
        self.waited_for = other_threads.Waits(state)
        self.prompt = None  # takes Python's lock at once, where that can be done
        self.held = None  # whether another thread held it before this look, where that is known
        self.others = None  # (time, CPU time of other threads), at the last look that asked
        self.python_loops = python_loops.PythonLoops()
        self.losses = losses.Losses()
        self.attention = attention.AttentionWeights()
        self.call_stacks = call_stacks.CallStacks()

    def start(self):
        """Called by the followed thread."""
        self.affinity = affinity.Affinity(_thread.get_native_id())
        library = native.library()
        if library is not None and library.allow_prompt_lock(True):
            self.prompt = library
            threads.register_at_fork(library)
        threads.start_thread(self._run)

    def stop(self):
        """Waits until the thread is done. When the interpreter ends, it ends other threads where they wait
        for its lock; within a function in C++, that aborts the process."""
        if not self.stopped:
            self.stopped = self.working.acquire(timeout=_LEAVES_S)
            if self.prompt is not None:
                self.prompt.allow_prompt_lock(False)
        return self.stopped

    def _run(self):
        try:
            self._loop()
        except Exception as failure:
            if not self.stopped and sys is not None:
                off(failure)

    def _loop(self):
        state = self.state
        begin = time.monotonic()
        next_pace = begin + _FIRST_PACE_S
        pause, notes_s, next_notes = 1.0 / self.rate_hz, _NOTES_S, begin + _FIRST_NOTES_S
        while state.background is self:
            self._sleep(pause)
            if not self.working.acquire(False):
                return
            try:
                if not state.thread:
                    return
                busy = time.thread_time()
                self._look_now()
                at = time.monotonic()
                if at >= next_notes:
                    state.facts.write()
                    next_notes = at + notes_s
                    notes_s = min(_MAX_NOTES_S, notes_s * _NOTES_GROWTH)
                self.busy_s += time.thread_time() - busy
            finally:
                self.working.release()
            if at >= next_pace:
                next_pace = at + _PACE_S
                pause = self._paced(pause, at - begin)

    def _paced(self, pause, elapsed_s):
        """The next pause between two looks: longer while this thread has used more than its share of the
        time, and shorter again afterwards, so that expensive looks at the start do not thin the whole run."""
        shortest, longest = 1.0 / self.rate_hz, 1.0 / min(self.rate_hz, _SLOW_RATE_HZ)
        if self.busy_s > _AT_FIRST_S + _MAX_BUSY * elapsed_s:
            self.thinned = True
            return min(longest, pause * _PACE)
        return max(shortest, pause / _PACE)

    def _sleep(self, seconds):
        if self._takes_lock_at_once():
            self.held = self.prompt.sleep_then_take(seconds)
        else:
            time.sleep(seconds)
            self.held = None

    def _takes_lock_at_once(self):
        if self.prompt is None or sys.getswitchinterval() > _LONGEST_SWITCH_S:
            return False
        return not _INTERRUPTS_MAIN_ONLY or self.state.thread == threading.main_thread().ident

    def _look_now(self):
        try:
            self._look(threads.stack_of(self.state.thread, self.prompt))
        finally:
            if self.prompt is not None:
                self.prompt.go_on()  # releases the thread that gave way for the look

    def _look(self, stack):
        loop = self.state.loop
        phase = loop.phase if loop is not None else INPUT_PHASE
        if loop is not None and loop.marking is not None:
            phase = INPUT_PHASE if loop.within() else TRAIN_PHASE
        preview = loop.preview if loop is not None and phase == VALIDATE_PHASE else None
        if preview is not None and (loop.playing or not (loop.steps and preview.evaluates)):
            phase = TRAIN_PHASE if loop.steps else STARTUP_PHASE  # rather a rollout
        if phase == STARTUP_PHASE:
            self.totals[phase] = self.totals.get(phase, 0) + 1
            self.call_stacks.add(phase, stack)
            found = places.of_start(stack)
            if found is not None:
                self._count(phase, *found)
            return
        of_sample = phase == INPUT_PHASE or loop is None
        if phase == VALIDATE_PHASE:
            place, called = places.of_stack(_outside_of_modules(stack))
        else:
            place, called = places.of_sample(stack) if of_sample else places.of_stack(stack)
        waits = self.waited_for.is_waiting(stack)
        of_loss = None  # how many of the innermost frames compute a loss that is no module
        if loop is not None and loop.saving:
            phase = CHECKPOINT
        elif loop is not None and phase == TRAIN_PHASE:
            phase, of_loss = self._phase_in_step(loop, stack)
        follows = loop is not None and not waits and self._follows_optimizer(loop, stack)
        found = (None, called if of_sample else None)
        if place is not None:
            code, line = place
            found = places.text(code, line), places.name_of(code)
            if loop is not None:
                self._judge_gap(loop, code.co_filename, line, waits, follows, of_loss is not None)
        if loop is not None and phase in (TRAIN_PHASE, BETWEEN, EXCHANGE, LOGGING):
            steps = loop.steps if loop.marking is None else loop.marking.steps_seen(loop.steps)
            if steps is not None:
                outer, _ = places.of_stack(_outside_of_modules(stack))
                call = (None, None) if outer is None else (places.text(*outer), places.name_of(outer[0]))
                self._count_unfinished(steps, (phase, found, call))
                self.call_stacks.add(phase, stack, steps)
                if phase == TRAIN_PHASE:
                    self.attention.count(stack)
                if phase == TRAIN_PHASE and not waits:
                    self._count_loops(stack, of_loss, steps)
                return
        # A worker that was forked has the stack of the line that requested it.
        part = places.within_sample(stack) if loop is None else stack
        if part is not None:
            self.call_stacks.add(phase, part)
        self.totals[phase] = self.totals.get(phase, 0) + 1
        if found[1] is not None:
            self._count(phase, *found)
        elif phase == INPUT_PHASE and loop is not None:
            sampler = places.of_sampler(stack)
            if sampler is not None:
                self._count(INDICES, places.text(*sampler), places.name_of(sampler[0]))

    def _phase_in_step(self, loop, stack):
        """The phase, and how many of the innermost frames compute a loss that is no module; None for none."""
        if loop.telling:
            return LOGGING, None
        work = self._work_of(stack)
        if work is None and loop.within():
            return TRAIN_PHASE, None
        follows = loop.after == AFTER_FORWARD and not loop.inside if loop.marking is None else None
        of_loss = self.losses.depth(stack, self._step_places(), follows) if work is None else None
        parts = loop.parts
        if follows and loop.validation is None and parts is not None and parts.forwards == loop.passes:
            if not any(_AUTOGRAD in code.co_filename for code, _ in stack):
                clears = any(_OPTIMIZERS in code.co_filename for code, _ in stack)
                is_loss = of_loss is not None or (work == TRAIN_PHASE and not clears)
                loop.gap_is_loss = self.losses.share(is_loss, _GAP_HITS)
        return work or (_phase_between(stack) if of_loss is None else TRAIN_PHASE), of_loss

    def _count_loops(self, stack, of_loss, steps):
        held, model = self._is_held(), self.state.facts.model_ref
        if model is not None:
            self.python_loops.count(stack, held, steps, model(), of_loss)

    def _is_held(self):
        """Whether the training thread held Python's lock. None if this look did not ask for it, or if another
        thread may have held it: it used the CPU since the last look that asked."""
        if self.held is None:
            return None
        before = self.others
        self.others = at, cpu_ns = now(), self.prompt.cpu_of_others(self.state.thread)
        if before is None or cpu_ns - before[1] > _OTHERS_WORK * (at - before[0]):
            return None
        return self.held

    def _count(self, phase, where, function, caller=None, looks=1):
        key = phase, where, function, caller
        if key in self.hits or len(self.hits) < _MAX_PLACES:
            self.hits[key] = self.hits.get(key, 0) + looks

    def _count_unfinished(self, steps, key):
        if steps != self.finished_steps:
            self._finish(self.unfinished)
            self.unfinished, self.finished_steps = {}, steps
        if key not in self.unfinished and len(self.unfinished) >= _MAX_PLACES:
            key = key[0], (None, None), (None, None)
        self.unfinished[key] = self.unfinished.get(key, 0) + 1

    def _finish(self, looks_of, of_no_step=False):
        """Counts these looks. Where they belong to no step, the line that calls the model counts, which says
        more than a line inside it."""
        for (phase, inner, call), looks in looks_of.items():
            where, function = call if of_no_step and call[1] else inner
            seen = AFTER if of_no_step else phase
            self.totals[seen] = self.totals.get(seen, 0) + looks
            if function is not None:
                self._count(seen, where, function, looks=looks)

    def take_startup(self):
        """Takes what the program did before, in looks of this thread."""
        for found, spent_s in startup.end().items():
            looks = round(spent_s * self.rate_hz)
            self.totals[STARTUP_PHASE] = self.totals.get(STARTUP_PHASE, 0) + looks
            self.call_stacks.add_at_start(STARTUP_PHASE, found, looks)
            if looks and found is not None:
                self._count(STARTUP_PHASE, *found, looks)

    def _work_of(self, stack):
        """TRAIN_PHASE if the model, autograd, an optimiser or a loader is on the stack, LOGGING if `logging`
        is, None if neither is."""
        inner = None
        for code, _ in stack:
            if inner is not None and _OPTIMIZERS in code.co_filename and _is_closure(inner):
                return None
            inner = code
            if code not in self.known_work:
                work = _known_work(code)
                self.known_work[code] = _METHOD if work is None and self.methods.has(code) else work
            known = self.known_work[code]
            if known == _METHOD:  # a loop that is a method calls the optimiser
                known = None if any(code in lines for lines in self._step_places()) else TRAIN_PHASE
            if known is not None:
                return known
        return None

    def _step_places(self):
        return [lines for lines in list(self.state.loop.step_places.values()) if lines]

    @staticmethod
    def _follows_optimizer(loop, stack):
        """Whether the line comes after the optimiser's step, in the function that both have in common: it
        belongs to the step before."""
        parts = loop.parts
        if loop.after != AFTER_STEP or parts is None or not parts.optimizers:
            return False
        stepped = loop.step_places.get(parts.optimizers[-1]) or {}
        for code, line in stack:
            if code in stepped:
                return line > stepped[code]
        return False

    def _judge_gap(self, loop, name, line, waits, follows=False, of_loss=False):
        """Without a loader, only the lines that run between two calls can show whether that time is input:
        decides by them."""
        parts = loop.parts
        if (
            parts is None
            or loop.marking is not None
            or parts.fetches
            or loop.inside
            or loop.in_optimizer
            or loop.phase == VALIDATE_PHASE
        ):
            return
        after = loop.after
        if loop.validation is not None or (after == AFTER_STEP and not parts.optimizers):
            return
        works = follows or after == AFTER_FORWARD  # on a batch, by indexing as well: a metric, a loss
        reads = self.reads.get((name, line, works))
        if reads is None:
            if len(self.reads) >= _MAX_PLACES:
                self.reads.clear()
            pattern = _FETCHES if works else _READS
            reads = self.reads[(name, line, works)] = _is_read(pattern, linecache.getline(name, line))
        self.gap_hits[after] += 1
        self.gap_reads[after] += (reads and not of_loss) or waits
        if self.gap_hits[after] >= _GAP_HITS:
            share = self.gap_reads[after] / self.gap_hits[after]
            loop.gap_is_input[after] = share if share >= 0.5 else 0.0

    def notes(self):
        if self.stopped:
            looks_of, self.unfinished = self.unfinished, {}
            self._finish(looks_of, of_no_step=True)
            self.call_stacks.finish(AFTER)
        role = self.state.role
        if self.affinity is not None:
            yield ("affinity",), self.affinity.note(role)
        yield from self.python_loops.notes()
        yield from self.attention.notes()
        yield ("stacks", role), self.call_stacks.note(role, self.stopped)
        by_phase = {}
        for (phase, where, function, caller), hits in list(self.hits.items()):
            by_phase.setdefault(phase, []).append((hits, where, function, caller))
        for phase, entries in by_phase.items():
            entries.sort(key=lambda entry: -entry[0])
            for hits, where, function, caller in entries[:_TOP]:
                if hits < 2 and role == "worker":
                    continue  # there may be hundreds of workers
                yield (
                    ("hot", role, phase, where, function, caller),
                    {
                        "type": "hot",
                        "role": role,
                        "phase": phase,
                        "where": where,
                        "function": function,
                        "caller": caller,
                        "hits": hits,
                        "total": self.totals[INPUT_PHASE if phase == INDICES else phase],
                    },
                )
