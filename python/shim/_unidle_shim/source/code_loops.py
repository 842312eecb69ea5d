"""Loops of a function, by its bytecode: a loop jumps back. Independent of how its source is written.

Not by its source: the parser shows warnings of the program once more, and keeps Python's lock for long.
Used by the sampling thread: no function of the program runs, and little is allocated."""

import opcode
import sys

_BACK = {
    number
    for name, number in opcode.opmap.items()
    if name.startswith(("JUMP_BACKWARD", "POP_JUMP_BACKWARD")) and not name.endswith("NO_INTERRUPT")
}
# To 3.10 a jump names its target, and goes back where that comes before.
_ABSOLUTE = set() if _BACK else set(opcode.hasjabs)
_EXTENDED, _LOAD_ATTR = opcode.opmap["EXTENDED_ARG"], opcode.opmap["LOAD_ATTR"]
_CACHE = opcode.opmap.get("CACHE")  # unused space after an instruction: a jump counts from behind it
_UNIT = 1 if sys.version_info < (3, 10) else 2  # bytes that the argument of a jump counts
_METHOD_BIT = sys.version_info >= (3, 12)  # of LOAD_ATTR: the attribute is called
_LOAD_METHOD = None if _METHOD_BIT else opcode.opmap["LOAD_METHOD"]
# Calls of what was loaded like any attribute: from 3.11 functions of imported modules, before 3.11 all with
# keywords. Where the result lies: in place of the function, or of the unused space below it.
_BELOW = -1 if (3, 11) <= sys.version_info < (3, 13) else 0
_CALLS = {
    opcode.opmap[name]: place
    for name, place in (
        ("CALL_FUNCTION_KW", 0),
        ("PRECALL", 0),
        ("CALL", _BELOW),
        ("CALL_KW", _BELOW),
        ("CALL_FUNCTION_EX", _BELOW),
    )
    if name in opcode.opmap
}
# Bytes between a function and its call, at most.
_AHEAD = 64 if sys.version_info < (3, 11) else 256
_HANDLERS_LAST = sys.version_info >= (3, 12)
# Bytes that evaluate what a loop iterates over; from 3.11 with unused space in them.
_BEFORE = 32 if sys.version_info < (3, 11) else 64
_LONGEST, _MOST = 1 << 15, 100_000  # bytes of a code object; its loops times its lines
# Methods of a module that give the modules in it.
GIVE_MODULES = frozenset(("children", "named_children", "modules", "named_modules"))


class Loop:
    """`first`: its first line. `lines`: all of its lines. `names`: attributes that it reads and does not
    call, except those of GIVE_MODULES; also those that it iterates over. `calls`: those that it calls."""

    __slots__ = ("first", "lines", "names", "calls")

    def __init__(self, first, lines, names, calls):
        self.first, self.lines, self.names, self.calls = first, lines, names, calls


def loops_of(code):
    """(its loops, the innermost ones first; the names of attributes that it reads outside of loops)."""
    if len(code.co_code) > _LONGEST:
        return [], set()
    jumps, reads, calls = _scan(code)
    lines = _lines(code)
    if len(jumps) * len(lines) > _MOST:
        return [], set()
    loops, outside = [], {name for at, name in reads if not any(a - _BEFORE <= at <= b for a, b in jumps)}
    for begin, end in sorted(jumps, key=lambda jump: jump[1] - jump[0]):
        own = [line for first, after, line in lines if line and after > begin and first <= end]
        names = {name for at, name in reads if begin - _BEFORE <= at <= end}
        if own:
            # Lines before its first one are what a `with` around the loop does before a `return` in it.
            first = min(own[0], own[-1])
            called = {name for at, name in calls if begin <= at <= end}
            loops.append(Loop(first, {line for line in own if line >= first}, names, called))
    return loops, outside


def _scan(code):
    """([(target, jump)] in bytes, [(offset, name of an attribute that is read)], those that are called)."""
    jumps, reads, calls, argument = {}, [], [], 0
    text, names = code.co_code, code.co_names
    for at in range(0, _end_of_usual_way(code), 2):
        operation, argument = text[at], argument << 8 | text[at + 1]
        if operation == _EXTENDED:
            continue
        if operation in _BACK:
            _add(jumps, _after(text, at) - _UNIT * argument, at)
        elif operation in _ABSOLUTE and _UNIT * argument <= at:
            _add(jumps, _UNIT * argument, at)
        elif operation in (_LOAD_ATTR, _LOAD_METHOD):
            index = argument >> 1 if _METHOD_BIT else argument
            called = argument & 1 if _METHOD_BIT else operation == _LOAD_METHOD
            called = called or _is_called(text, _after(text, at))
            if index < len(names):
                is_read = not called or names[index] in GIVE_MODULES
                (reads if is_read else calls).append((at, names[index]))
        argument = 0
    return list(jumps.items()), reads, calls


def _after(text, at):
    """Where the next instruction is."""
    at += 2
    while at < len(text) and text[at] == _CACHE:
        at += 2
    return at


def _is_called(text, at):
    """Whether what was loaded before `at` is called: a call is the first instruction that takes it."""
    above, argument = 0, 0  # what lies on it
    end = min(len(text), at + _AHEAD)
    while at < end:
        operation, argument = text[at], argument << 8 | text[at + 1]
        if operation != _EXTENDED:
            given = argument if operation >= opcode.HAVE_ARGUMENT else None
            above, argument = above + opcode.stack_effect(operation, given), 0
            if above <= 0:
                return _CALLS.get(operation) == above
        at = _after(text, at)
    return False


def _end_of_usual_way(code):
    """From 3.12 what runs after an exception, `except` and the end of a `with`, stands behind all other code,
    and jumps back to where that continues: not a loop."""
    table = code.co_exceptiontable if _HANDLERS_LAST else b""
    numbers, continues = [], False
    for byte in table:  # of each entry: begin, length, handler, depth; six bits in a byte
        if not continues:
            numbers.append(0)
        numbers[-1], continues = numbers[-1] << 6 | byte & 63, byte & 64
    return min([2 * unit for unit in numbers[2::4]] + [len(code.co_code)])


def _add(jumps, target, at):
    """A loop may be continued at several places: it goes to the last one."""
    target = max(0, target)
    jumps[target] = max(at, jumps.get(target, at))


def _lines(code):
    """[(first byte, byte after it, line)]."""
    if hasattr(code, "co_lines"):
        return list(code.co_lines())
    found, line, at = [], code.co_firstlineno, 0
    table = code.co_lnotab
    for step in range(0, len(table), 2):
        if table[step]:
            found.append((at, at + table[step], line))
            at += table[step]
        line += table[step + 1] - 256 * (table[step + 1] > 127)
    return found + [(at, len(code.co_code), line)]
