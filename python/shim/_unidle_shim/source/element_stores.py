"""Elements that code assigns or deletes: the names by which it reaches their container, and whether it made
the container itself. A container that cannot be followed counts as one that it did not make."""

import dis
import sys

_STORES = {"STORE_SUBSCR": 1, "DELETE_SUBSCR": 1, "STORE_SLICE": 2}  # values above the container
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_NOTHING = ("EXTENDED_ARG", "CACHE", "NOP", "PRECALL")
_MAKES = (
    *("BUILD_", "CALL", "BINARY_", "INPLACE_", "UNARY_", "COMPARE_", "FORMAT_"),
    *("LOAD_CONST", "LOAD_SMALL_INT"),
)
_FILLS = ("LIST_EXTEND", "LIST_TO_TUPLE", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE")  # a display of elements
_TAKES = ("STORE_FAST", "STORE_DEREF", "POP_TOP", "POP_JUMP")  # the last value, and nothing else
_PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
}
_UNKNOWN = False, frozenset()


def of(code):
    """(whether the code made the container, names) of each element that it assigns or deletes."""
    return _Code(code).stores()


class _Step:
    """An instruction; those that load or store two variables at once are two steps."""

    def __init__(self, name, value, effect, is_target):
        self.name, self.value, self.effect, self.is_target = name, value, effect, is_target


def _steps(code):
    found = []
    for one in dis.get_instructions(code):
        name = one.opname.replace("_BORROW", "").replace("_CHECK", "")
        if name == "LOAD_ATTR" and sys.version_info >= (3, 12) and one.arg & 1:
            name = "LOAD_METHOD"  # as it was called before
        if name in _PAIRS:
            for each, value in zip(_PAIRS[name], one.argval):
                found.append(_Step(each, value, 1 if each == "LOAD_FAST" else -1, one.is_jump_target))
        elif name not in _NOTHING:
            name = "BINARY_SUBSCR" if one.argrepr == "[]" else name
            found.append(_Step(name, one.argval, _effect(one), one.is_jump_target))
        elif name == "PRECALL" and found:
            found[-1].effect += _effect(one)
    return found


def _effect(one):
    return dis.stack_effect(
        one.opcode, one.arg if one.opcode >= dis.HAVE_ARGUMENT or one.arg else None, jump=False
    )


def _reorders(one):
    return one.name.startswith(("SWAP", "ROT_"))


def _copies(one):
    """Whether it copies several values, or one that is not the last."""
    return one.name == "DUP_TOP_TWO" or one.name == "COPY" and one.value > 1


class _Code:
    def __init__(self, code):
        self.steps = _steps(code)
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        self.given = {*code.co_varnames[:count], *code.co_freevars}
        # Without methods that are called: what they return counts as made.
        self.all_names = frozenset(
            one.value for one in self.steps if one.name == "LOAD_ATTR" or one.name in _GLOBALS
        )
        self.followed = set()  # local variables

    def stores(self):
        found = []
        for at, one in enumerate(self.steps):
            if one.name in _STORES:
                self.followed = set()
                place = self._container(at, _STORES[one.name])
                found.append((False, self.all_names) if place is None else self._origin(place))
        return found

    def _container(self, at, above):
        """The step after which the container is the last value; None if that is not certain."""
        if self.steps[at].is_target:
            return None
        at -= 1
        if at >= 0 and _reorders(self.steps[at]):  # of `a[b] += c`: a and b were copied
            while at >= 0 and not _copies(self.steps[at]):
                at -= 1
            while at >= 0 and _copies(self.steps[at]):
                at -= 1
        return self._below(at, above)

    def _below(self, at, above):
        """The step after which the value is the last one that has `above` values above it after step `at`."""
        while above > 0:
            one = self.steps[at] if at >= 0 else None
            if one is None or one.is_target or _reorders(one) or _copies(one):
                return None
            above = 0 if one.name.startswith("UNPACK") and above <= one.effect else above - one.effect
            at -= 1
        return at if above == 0 and at >= 0 else None

    def _origin(self, at):
        """(whether the code made it, names) of the last value after this step."""
        one = self.steps[at] if at is not None and at >= 0 else None
        if one is None:
            return _UNKNOWN
        if one.name == "LOAD_FAST" or one.name == "LOAD_DEREF":
            return self._local(one.value)
        if one.name in _GLOBALS:
            return False, frozenset([one.value])
        if one.name == "FOR_ITER":  # an element of what was made elsewhere
            return False, self._origin(at - 1)[1]
        if one.is_target:  # what came before may be another expression
            return _UNKNOWN
        if one.name in _ATTRIBUTES:
            made, names = self._origin(at - 1)
            return made, names | {one.value}
        if one.name in ("BINARY_SUBSCR", "BINARY_SLICE"):
            return self._origin(self._below(at - 1, 1 if one.name == "BINARY_SUBSCR" else 2))
        if one.name.startswith("UNPACK") or one.name in ("GET_ITER", "DUP_TOP", "COPY") and not _copies(one):
            return self._origin(at - 1)
        if one.name.startswith(_TAKES):  # the last value now is the one that was below
            return self._origin(self._below(at - 1, 1))
        return (True, frozenset()) if one.name.startswith(_MAKES) or one.name in _FILLS else _UNKNOWN

    def _local(self, name):
        if name in self.given:
            return _UNKNOWN
        if name in self.followed:
            return True, frozenset()
        self.followed.add(name)
        origins = [
            _UNKNOWN if one.is_target else self._origin(at - 1)
            for at, one in enumerate(self.steps)
            if one.name in ("STORE_FAST", "STORE_DEREF") and one.value == name
        ]
        made = bool(origins) and all(made for made, _ in origins)
        return made, frozenset().union(*(names for _, names in origins))
