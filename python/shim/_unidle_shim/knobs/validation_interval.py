"""validation.every at run time: makes only every Nth call of the function in which the program validates.

Only for a function on which training does not depend, as far as can be seen: it returns nothing or its result
is unused, it steps no optimiser and changes none (as schedulers do), saves nothing, cannot end the training,
and changes none of its arguments and nothing that the training loop reads. It draws no random numbers, or
only such as can be drawn in its place; a generator of the program's own is left alone.
"""

import sys
from threading import get_ident

from _unidle_shim.host import guard, places
from _unidle_shim.host.guard import caught
from _unidle_shim.loop.loop import now
from _unidle_shim.source import fingerprint, generators, purity, side_effects
from _unidle_shim.source.stand_in import Stub

KNOB = "validation.every"
_MOST_LOOKS = 256  # calls of eval() that are inspected
_LOOP = "it can only skip calls of a validation function; here the training loop or a library validates"


class Validating:
    def __init__(self, state, actuators):
        self.state, self.actuators = state, actuators
        self.interval = None  # the requested one
        self.training = set()  # code on the way to a forward pass of training
        self.known = {}  # code -> why its calls cannot be left out; None: they can
        self.said = False  # it was reported as applied
        self.looks = 0
        self.place = None
        state.on_training_forward.append(self.trains)

    def ask(self, value):
        try:
            self.interval = max(0, int(value))
        except (TypeError, ValueError):
            self._say(value, "refused", "a whole number is expected")

    def trains(self, frame):
        """One of the first forward passes of training."""
        while frame is not None:
            self.training.add(frame.f_code)
            frame = frame.f_back

    def read_of(self, changed, function):
        """The names of `changed` that the program reads on the way to a step, but for the function itself."""
        read = side_effects.names_of_loop(self.training, function) if changed else ()
        return [name for name in sorted(changed) if name in read]

    def evaluates(self, frame):
        """eval() was called for a model."""
        self.looks += 1
        if self.looks > _MOST_LOOKS or not self.training:
            return
        code = caller = None
        while frame is not None:
            if places.is_own(frame.f_code) and frame.f_code not in self.training:
                code, caller = frame.f_code, frame.f_back  # the outermost one in the end
            frame = frame.f_back
        if code in self.known:
            return
        function, why = (
            (None, _LOOP) if code is None or code.co_name.startswith("<") else side_effects.function_of(code)
        )
        if (
            why is None
            and not side_effects.returns_nothing(code)
            and not side_effects.result_is_dropped(side_effects.caller(caller))
        ):
            function, why = (
                None,
                "the program may use what %s returns" % function.__qualname__,
            )
        if why is None:
            why = self._by_its_code(function)
        self.known[code] = why
        if why is None:
            self.place = places.text(code, code.co_firstlineno)
        if self.interval is None:
            return
        if why is not None:
            self._say(self.interval, "refused-in-part", why)
        else:
            ValidationSkipper(self, function)

    def _by_its_code(self, function):
        """Why the calls cannot be left out, as far as the code alone says it."""
        used = side_effects.used(function, ())
        changed = side_effects.stored(function, ())
        why = _why_needed(function, used, self.read_of(changed, function))
        if (
            why is None
            and side_effects.raises(function, ())
            and side_effects.catches(filter(places.is_own, self.training))
        ):
            why = "%s raises exceptions, and the training loop catches some" % function.__qualname__
        return why

    def saves(self, frame):
        """A checkpoint is saved in this frame: the functions that call it cannot be left out."""
        while frame is not None:
            code = frame.f_code
            if code in self.known and self.known[code] is None and self.interval is None:
                self.known[code] = "%s saves a checkpoint or results" % places.name_of(code)
                self.place = None
            frame = frame.f_back

    def in_force(self):
        return self.interval if self.said else 1

    def note(self):
        """If one of several functions cannot be left out, its reason is reported: which of them takes the
        time is unknown here."""
        if not self.known:
            return None
        why = next((why for why in list(self.known.values()) if why is not None), None)
        optional = why is None and self.place is not None
        return {
            "type": "validation",
            "optional": optional,
            "where": self.place if optional else None,
            "why": why,
        }

    def refuse(self, function, why):
        self.known[function.code] = why
        self.place = None
        self._say(self.interval, "refused" if self.said else "refused-in-part", why)

    def taken(self):
        if not self.said:
            self.said = True
            self._say(self.interval, "taken", None, self.interval)

    def _say(self, asked, status, why, value=None):
        self.actuators.say(KNOB, asked, status, why, value)


def _why_needed(function, used, read):
    """`used`: names that the function uses. `read`: of those that it changes, the ones that the training loop
    reads. None if neither says so."""
    name, end = function.__qualname__, side_effects.ends_training(used, function)
    if side_effects.schedules(used):
        return "%s steps a scheduler or an optimiser" % name
    if side_effects.saves(used):
        return "%s saves a checkpoint or results" % name
    if end is not None:
        return "%s can end the training (%s)" % (name, end)
    return "%s changes %s, which the training loop reads" % (name, read[0]) if read else None


class ValidationSkipper:
    """Decides for each call of the function whether it is made. The first calls are made and inspected."""

    def __init__(self, validating, function):
        self.validating, self.stub = validating, Stub(function, self._called)
        self.original, self.code = self.stub.original, self.stub.code
        self.calls, self.draws, self.proved = 1, 0, False
        self.returns_nothing, self.places = side_effects.returns_nothing(self.code), {}
        self.used = None  # names that the function uses

    def _called(self, args, kwargs):
        seen, left_out = None, False
        try:
            if not guard.failed and self._may_be_left_out(sys._getframe(2)):
                self.calls += 1
                if self.proved and (self.validating.interval == 0 or self.calls % self.validating.interval):
                    self._draw()
                    left_out = True
                else:
                    own = generators.states(self.original, args, kwargs)
                    seen = now(), purity.random_states(), own, self._holds(args, kwargs)
        except BaseException as failure:
            seen = left_out = caught(failure)
        if left_out:
            return None
        result = self.original(*args, **kwargs)
        if seen is not None:
            try:
                self._judge(seen, args, kwargs)
            except BaseException as failure:
                caught(failure)
        return result

    def _may_be_left_out(self, frame):
        """Whether this call, made there, may be left out."""
        return self.validating.state.thread == get_ident() and (
            self.returns_nothing or self._is_dropped(frame)
        )

    def _draw(self):
        """Draws all random numbers that the function would draw, or none."""
        if not self.draws:
            return
        before = purity.random_states()
        try:
            purity.draw(self.draws)
        except BaseException:
            purity.restore(before)
            raise

    def _is_dropped(self, frame):
        """Whether the result of the call made there is unused."""
        frame = side_effects.caller(frame)
        place = frame.f_code, frame.f_lasti
        if place not in self.places:
            self.places[place] = side_effects.result_is_dropped(frame)
        return self.places[place]

    def _holds(self, args, kwargs):
        """The state that the function may change: (what optimisers hold beside the parameters; the arguments;
        its module and its object, by name)."""
        if self.used is None:
            self.used = side_effects.used(self.original, args)
        names = dict(self.original.__globals__, **side_effects.members(args[0]) if args else {})
        named = side_effects.contents(names)
        named.update((name, fingerprint.of(names[name])) for name in self.used if name in names)
        given = self._method(args), kwargs
        return self._optimizers(), fingerprint.of(given), named

    def _method(self, args):
        """The arguments without the object, for a method."""
        own = args and self.code in map(side_effects.code_of, vars(type(args[0])).values())
        return args[1:] if own else args

    def _optimizers(self):
        return [
            [
                fingerprint.of({key: value for key, value in group.items() if key != "params"})
                for group in one.param_groups
            ]
            for one in self.validating.state.facts.all_optimizers()
        ]

    def _judge(self, seen, args, kwargs):
        """Judges the call that was made."""
        why = self._why_not(seen, args, kwargs)
        if why is not None:
            self.stub.give_back()
            self.validating.refuse(self, why)
        else:
            self.proved = True
            self.validating.taken()

    def _why_not(self, seen, args, kwargs):
        begin, before, own, (rates, given, kept) = seen
        loop, name = self.validating.state.loop, self.original.__qualname__
        if loop is None or loop.stepped_at > begin:
            return "%s trains as well" % name
        if loop.saved_at > begin:
            return "%s saves a checkpoint or results" % name
        rates_now, given_now, left = self._holds(args, kwargs)
        if rates_now != rates:
            return "%s changes an optimiser, as schedulers do" % name
        if given_now != given:
            return "%s changes its arguments" % name
        changed = {key for key, what in left.items() if kept.get(key, self) != what}
        changed |= side_effects.stored(self.original, args)
        needed = _why_needed(self.original, self.used, self.validating.read_of(changed, self.original))
        if needed is not None:
            return needed
        if own is None:
            return "%s holds too many objects to find their random generators" % name
        self.draws = None if generators.moved(own) else purity.draws(before, purity.random_states())
        if self.draws is None:
            return "%s draws random numbers, and without it the training would draw others" % name
        return None
