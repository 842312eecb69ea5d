"""Runs the torch profiler for a few steps (`unidle run --trace N`) and writes its trace beside the record.

Begins once start-up is over, and skips the profiler's warm-up step. Stops permanently when the program
profiles itself. A failure ends the window and writes one `trace` note; nothing else is affected.
"""

import inspect
import json
import os
import resource
import time

from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.guard import caught
from _unidle_shim.host.notes import write_line
from _unidle_shim.host.patching import around
from _unidle_shim.loop.loop import now

_FIRST_STEP = 10  # earlier steps allocate, tune and compile
_RATED_S = 1  # on CUDA, rates come from the steps before the window: CUPTI stays attached to the process
_LONGEST_S = 60  # slow steps end the window early, so that the trace stays readable in size
_WAITING, _WARMING, _OPEN, _OVER = range(4)


def wanted():
    text = os.environ.get("UNIDLE_TRACE_STEPS", "")
    return int(text) if text.isdigit() and int(text) > 0 else 0


class Tracing:
    def __init__(self, state, steps):
        self.state, self.steps = state, steps
        self.stage = _WAITING
        self.profiler = self.step_mark = None
        self.told = None  # the callback that received steps before
        self.making = False  # a profiler made now is ours
        self.first = _FIRST_STEP
        self.taken = 0  # steps in the window so far
        self.begin_ns = self.cost_ns = 0
        self.started_ns = self.attached_ns = 0  # when the loop began; when CUPTI was attached
        self.latest = None  # the last step after which it can begin and still end within the run
        self._watch_for_others()
        reason = self._unfit()
        if reason:
            self._off(reason)

    # -- calls from the loop --

    def follow(self, loop):
        """The loop begins: from now on every finished step is reported here."""
        self.started_ns = now()
        if loop.max_steps:
            self.latest = max(1, loop.max_steps - self.steps - 2)
            self.first = min(self.first, self.latest)
        self.told = loop.on_step
        loop.on_step = self._on_step

    def _on_step(self, loop):
        if self.told is not None:
            loop.on_step = self.told
            self.told(loop)
            self.told = loop.on_step  # the callback removes itself once it has nothing left to do
        if self.stage != _OVER:
            self._step_over(loop)
        loop.on_step = self.told if self.stage == _OVER else self._on_step

    def finish(self):
        """The process exits normally."""
        try:
            if self.stage == _OPEN and self.taken:
                self._close()
            elif self.stage != _OVER:
                self._abandon()
                self._off(
                    "the run ended before the window was over; it begins after %d steps%s"
                    % (self.first, " and %d s" % _RATED_S if self._on_cuda() else "")
                )
        except Exception as failure:
            self._fail(failure)

    def forked(self):
        self.stage = _OVER

    # -- the window --

    def _step_over(self, loop):
        begin = now()
        try:
            if self.stage == _WAITING:
                if loop.steps < self.first or (self._too_early(begin) and loop.steps != self.latest):
                    return
                self._prepare()
            elif self.stage == _WARMING:
                self._open(loop)
            else:
                self._next_step()
        except Exception as failure:
            self._fail(failure)
        # Our own time belongs neither to the step nor to the call in which it was spent.
        cost = now() - begin
        self.cost_ns += cost
        loop.total += cost
        if loop.parts is not None:
            loop.parts.begin += cost
            loop.parts.last = max(loop.parts.last, loop.parts.begin)

    def _on_cuda(self):
        cuda = self.state.torch.cuda
        return cuda.is_initialized() and cuda.is_available()  # the latter alone would make later forks fail

    def _too_early(self, t):
        return t - self.started_ns < _RATED_S * 1_000_000_000 and self._on_cuda()

    def _prepare(self):
        torch = self.state.torch
        if torch.autograd._profiler_enabled():
            return self._off("the program profiles itself")
        if int(torch.__version__.split(".")[0]) < 2:
            return self._off("the profiler of a torch before 2.0 writes on the program's stderr")
        profile = torch.autograd.profiler.profile
        cuda = self._on_cuda()
        options = {"use_kineto": True, "record_shapes": True}  # shapes: for the operations of a step
        if "use_device" in inspect.signature(profile.__init__).parameters:
            options["use_device"] = "cuda" if cuda else None
        elif cuda:
            options["use_cuda"] = True
        self.attached_ns = now() if cuda else 0
        self.making = True
        quiet = "KINETO_LOG_LEVEL" not in os.environ
        try:
            if quiet:
                os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler would write to the program's stderr
            self.profiler = profile(**options)
            self.profiler._prepare_trace()
        finally:
            self.making = False
            if quiet:
                os.environ.pop("KINETO_LOG_LEVEL", None)
        self.stage = _WARMING

    def _open(self, loop):
        self.profiler._start_trace()
        self.stage, self.begin_ns, self.first = _OPEN, now(), loop.steps
        self._mark_clock()
        self._mark_step()

    def _next_step(self):
        self.taken += 1
        if self.taken >= self.steps or now() - self.begin_ns > _LONGEST_S * 1e9:
            return self._close()
        self._end_mark()
        self._mark_step()

    def _mark_step(self):
        self.step_mark = self.state.torch.autograd.profiler.record_function(
            "ProfilerStep#%d" % (self.first + self.taken)
        )
        self.step_mark.__enter__()

    def _end_mark(self):
        mark, self.step_mark = self.step_mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _mark_clock(self):
        """Links the profiler's clock to ours."""
        for _ in range(3):
            with self.state.torch.autograd.profiler.record_function("unidle.clock.%d" % time.monotonic_ns()):
                pass

    def _close(self):
        end_ns = now()
        self._end_mark()
        self._mark_clock()
        self.stage = _OVER
        profiler, self.profiler = self.profiler, None
        profiler.__exit__(None, None, None)
        file = "trace-%d.json" % os.getpid()
        path = os.path.join(os.path.dirname(os.environ["UNIDLE_PROBE_DIR"]), file)
        profiler.export_chrome_trace(path + ".part")
        os.rename(path + ".part", path)
        self._note(
            status="recorded",
            file=file,
            begin_ns=self.begin_ns,
            end_ns=end_ns,
            first_step=self.first,
            steps=self.taken,
            seconds=round((now() - end_ns + self.cost_ns) * 1e-9, 3),
        )

    def _abandon(self):
        """Ends the profiler if it runs, and discards its data."""
        opened, profiler = self.stage == _OPEN, self.profiler
        self.stage, self.profiler = _OVER, None
        if profiler is None:
            return
        if opened:
            self._end_mark()
        else:
            profiler._start_trace()  # a profiler that was only prepared cannot be ended otherwise
        profiler.__exit__(None, None, None)

    # -- giving way to the program's profiler --

    def _unfit(self):
        if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
            return "files may not grow without limit, so that writing the trace could end the program"
        for name in ("NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH"):
            if os.environ.get(name):
                return "another profiler is at work (%s is set)" % name
        return None

    def _watch_for_others(self):
        """Stops our profiler before the program's starts: only one can run."""
        torch = self.state.torch
        tracing = self

        def before(args, kwargs):
            try:
                if (
                    not tracing.making
                    and tracing.stage != _OVER
                    and kwargs.get("enabled", args[1] if len(args) > 1 else True)
                ):
                    tracing._give_way()
            except BaseException as failure:
                caught(failure)

        around(torch.autograd.profiler.profile, "__init__", before, None)
        kineto = getattr(torch.profiler.profiler, "_KinetoProfile", None)
        if kineto is not None:
            around(kineto, "__init__", before, None)

    def _give_way(self):
        try:
            self._abandon()
            self._off("the program profiles itself")
        except Exception as failure:
            self._fail(failure)

    def _fail(self, failure):
        pass_on(failure)
        try:
            self._abandon()
        except Exception as another:
            pass_on(another)
        self._off("%s: %s" % (type(failure).__name__, str(failure)[:200]))

    def _off(self, reason):
        self.stage = _OVER
        self._note(status="off", reason=reason)

    def _note(self, **fields):
        if self.attached_ns:
            fields["attached_ns"] = self.attached_ns
        write_line(json.dumps(dict(type="trace", **fields))[1:-1])
