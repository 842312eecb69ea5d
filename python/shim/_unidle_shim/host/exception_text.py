"""What a record says of an exception: its message, and the line of the program that raised it."""

from _unidle_shim.host import places
from _unidle_shim.host.exception_origin import pass_on

_MAX_MESSAGE, _MAX_TRACEBACK = 2000, 8000
_MAX_NESTED = 20  # groups within groups
_GROUP = getattr(__import__("builtins"), "BaseExceptionGroup", ())
_QUOTED = "Traceback (most recent call last):"
_FRAME = r'(?m)^ *File "([^"\n]+)", line (\d+)'
_MESSAGE = r"(?m)^[A-Za-z_][\w.]*(?:: .*)?$"


def text_of(value):
    """str(value), which is code of the program: once, and whatever it raises."""
    try:
        return str(value)[:_MAX_MESSAGE]
    except BaseException as failure:
        pass_on(failure)
        return "<exception str() failed>"


def name_of(kind):
    plain = kind.__module__ in ("builtins", "__main__")
    return kind.__name__ if plain else "%s.%s" % (kind.__module__, kind.__name__)


def first_of_group(value):
    """The first exception of a group, however deep; else `value`."""
    for _ in range(_MAX_NESTED):
        if not isinstance(value, _GROUP):
            break
        value = value.exceptions[0]
    return value


def described(value, text, trace):
    """(message, where or None) of an exception with this text. The text may quote the traceback of another
    process, as those of loaders' workers and of torch.multiprocessing do: then its end counts."""
    message = "%s: %s" % (name_of(type(value)), text) if text else name_of(type(value))
    where = _line_of(value, trace)
    if _QUOTED in text:
        import re

        quote = text.rpartition(_QUOTED)[2]
        said = re.findall(_MESSAGE, quote)
        return said[-1] if said else message, _line_in(quote) or where
    cause = value.__cause__
    if cause is None:
        return message, where
    of_cause = text_of(cause)
    if _QUOTED in of_cause:  # of a process of multiprocessing or concurrent.futures
        return message, _line_in(of_cause) or where
    because = "%s: %s" % (name_of(type(cause)), of_cause) if of_cause else name_of(type(cause))
    return "%s (from %s)" % (message, because), where


def _line_of(value, trace):
    where = None
    while trace is not None:
        if places.is_own(trace.tb_frame.f_code):
            where = places.text(trace.tb_frame.f_code, trace.tb_lineno)
        trace = trace.tb_next
    if isinstance(value, SyntaxError) and value.filename and places.is_own_file(value.filename):
        return "%s:%d" % (places.short(value.filename), value.lineno or 0)
    return where


def _line_in(quote):
    """The innermost line of the program's own in a printed traceback."""
    import re

    own = [(file, line) for file, line in re.findall(_FRAME, quote) if places.is_own_file(file)]
    return "%s:%s" % (places.short(own[-1][0]), own[-1][1]) if own else None


def traceback_of(value, text, trace):
    import traceback

    lines = [_QUOTED + "\n"] + traceback.format_list(traceback.extract_tb(trace, limit=-40))
    if isinstance(value, SyntaxError):
        lines += traceback.format_exception_only(type(value), value)
    else:
        name = name_of(type(value))
        lines.append("%s: %s\n" % (name, text) if text else name + "\n")
    return "".join(lines)[-_MAX_TRACEBACK:]
