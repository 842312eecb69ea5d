"""Records exceptions that end the program, and those that it prints and survives."""

import os
import sys
import time

from _unidle_shim.host import guard, hidden_frames
from _unidle_shim.host.notes import write_notes

_seen = {}  # id of an exception -> (a token to detect reuse of the id, whether it was caught)
_MAX_SEEN = 1000
_MAX_NOTES = 50  # notes written at once; after them only the newest, now and then
_MAX_HELD = 10000  # bytes
_GENERATOR = 0x20  # inspect.CO_GENERATOR
_WORDS = {None: "null", True: "true", False: "false"}
_PLAIN = (str, int, float, bytes, bool, type(None))
_written = 0
_waiting = None  # the newest exception beyond _MAX_NOTES


def install_hooks():
    """Python prints uncaught exceptions in C, without the traceback module."""
    _wrap_hook(sys, "excepthook", _excepthook)
    _wrap_hook(sys, "unraisablehook", _unraisablehook)


def threading_imported(threading):
    _wrap_hook(threading, "excepthook", _thread_excepthook)


def _wrap_hook(module, name, wrap):
    """Wraps the hook in use and the default hook: a program's own hook may call the default, or compare the
    two."""
    default = "__%s__" % name
    used, standard = getattr(module, name), getattr(module, default, None)
    setattr(module, name, wrap(used))
    if standard is not None:
        setattr(module, default, getattr(module, name) if used is standard else wrap(standard))


def _excepthook(original):
    from _unidle_shim.host import places

    @hidden_frames.wraps(original)
    def hook(kind, value, trace):
        try:
            hidden_frames.strip_exception(value)
            trace = hidden_frames.strip(trace)
            if guard.on:
                note(kind, value, trace, caught=_asked_by_program(sys._getframe().f_back, places))
        except BaseException as failure:
            guard.caught(failure)
        original(kind, value, trace)

    return hook


def _thread_excepthook(original):
    @hidden_frames.wraps(original)
    def hook(args):
        try:
            hidden_frames.strip_exception(args.exc_value)
        except BaseException as failure:
            guard.caught(failure)
        original(args)

    return hook


def _unraisablehook(original):
    # Local names: while Python shuts down, globals may be None.
    strip, caught = hidden_frames.strip, guard.caught

    @hidden_frames.wraps(original)
    def hook(args):
        try:
            trace = strip(args.exc_traceback)
            if trace is not args.exc_traceback:
                args = type(args)((args.exc_type, args.exc_value, trace, args.err_msg, args.object))
        except BaseException as failure:
            caught(failure)
        original(args)

    return hook


def traceback_imported(traceback):
    from _unidle_shim.host import places

    original = traceback.TracebackException.__init__

    @hidden_frames.wraps(original)
    def init(self, exc_type, exc_value, exc_traceback, *args, **kwargs):
        if exc_traceback is not None:
            try:
                exc_traceback = hidden_frames.strip(exc_traceback)
                if _asked_by_program(sys._getframe(1), places):
                    note(exc_type, exc_value, exc_traceback, caught=True)
            except BaseException as failure:
                guard.caught(failure)
        return original(self, exc_type, exc_value, exc_traceback, *args, **kwargs)

    traceback.TracebackException.__init__ = init
    _hide_from(traceback)


def _hide_from(traceback):
    """Everything that prints, formats or extracts a traceback or the stack uses one of these three."""
    walk_tb, extract_tb, walk_stack = traceback.walk_tb, traceback.extract_tb, traceback.walk_stack

    @hidden_frames.wraps(walk_tb)
    def walk(tb):
        yield from walk_tb(_stripped(tb))

    @hidden_frames.wraps(extract_tb)
    def extract(tb, limit=None):
        return extract_tb(_stripped(tb), limit)

    @hidden_frames.wraps(walk_stack)
    def stack(f):
        frames = walk_stack(f)
        if f is None:
            next(frames, None)  # it skips to its caller's frame, and ours is one more
        yield from _not_ours(frames)

    @hidden_frames.wraps(walk_stack)
    def stack_at_once(f):
        """Since Python 3.14 it takes the stack of the call, not of the first `next`."""
        return _not_ours(walk_stack(sys._getframe(1) if f is None else f))

    if not walk_stack.__code__.co_flags & _GENERATOR:
        stack = stack_at_once
    traceback.walk_tb, traceback.extract_tb, traceback.walk_stack = walk, extract, stack


def _not_ours(frames):
    for one in frames:
        if not one[0].f_code.co_filename.startswith(hidden_frames.MARK):
            yield one


def _stripped(trace):
    try:
        return hidden_frames.strip(trace)
    except BaseException as failure:
        guard.caught(failure)
    return trace


def _asked_by_program(frame, places):
    """Whether the program's own code requested the printing, with only traceback and logging in between."""
    while frame is not None:
        name = os.path.basename(frame.f_code.co_filename)
        if places.is_own(frame.f_code):
            return True
        if name not in (
            "traceback.py",
            "__init__.py",
            "contextlib.py",
        ) and not frame.f_code.co_filename.startswith(hidden_frames.MARK):
            return False
        if name == "__init__.py" and "logging" not in frame.f_code.co_filename:
            return False
        frame = frame.f_back
    return False


def begin_again():
    """For another record of this process."""
    global _written, _waiting
    _seen.clear()
    _written, _waiting = 0, None


def note(kind, value, trace, caught):
    global _written, _waiting
    if not guard.on or kind is None or issubclass(kind, SystemExit):
        return
    from _unidle_shim.host import exception_text

    text = exception_text.text_of(value)
    if _is_known(kind, value, text, caught):
        return
    if _written < _MAX_NOTES or not caught:
        _written += 1
        _write(_line(value, text, trace, caught, exception_text))
        _waiting = None
    else:
        _waiting = _line(value, text, None, caught, exception_text)


def flush():
    """Writes the waiting note. What counts is how the run continued after its last error, however many there
    were."""
    global _waiting
    line, _waiting = _waiting, None
    if line is not None:
        _write(line)


def _write(line):
    write_notes(line)


def _is_known(kind, value, text, caught):
    """Whether it was noted before: several handlers may print one exception, some at the end of the run. Ids
    are reused."""
    token, (known, was_caught) = _token(kind, value, text), _seen.get(id(value), (None, True))
    if known is token or (type(token) is str and known == token):
        if caught or not was_caught:
            return True
    if len(_seen) >= _MAX_SEEN:
        _seen.clear()
    _seen[id(value)] = token, caught
    return False


def _token(kind, value, text):
    """While we hold its arguments, no other exception has the same ones. Objects of the program are not held,
    nor are large texts."""
    args = getattr(value, "args", ())
    if args and all(type(each) in _PLAIN for each in args) and sys.getsizeof(args[0]) < _MAX_HELD:
        return args
    return "%s: %s" % (kind.__name__, text)


def _line(value, text, trace, caught, exception_text):
    first = exception_text.first_of_group(value)
    if first is not value:
        text, trace = exception_text.text_of(first), trace and (first.__traceback__ or trace)
    at = trace if trace is not None else getattr(value, "__traceback__", None)
    message, where = exception_text.described(first, text, at)
    body = {
        "type": "exception",
        "message": message,
        "class": exception_text.name_of(type(first)),
        "where": where,
        "traceback": None,
        "caught": caught,
    }
    if type(first) is KeyboardInterrupt:
        return _in_short(body)
    import json

    if trace is not None:
        body["traceback"] = exception_text.traceback_of(first, text, trace)
    return '{"t_ns":%d,%s\n' % (time.monotonic_ns(), json.dumps(body, default=str)[1:])


def _in_short(body):
    """The same of a note of texts and bools, without an import of modules in Python: one that evaluates text
    (json and traceback lead to a namedtuple) makes Python forget that the interrupt was not handled, and end
    with code 1 rather than by the signal."""
    from _json import encode_basestring_ascii as quoted

    fields = [
        "%s:%s" % (quoted(key), quoted(text) if type(text) is str else _WORDS[text])
        for key, text in body.items()
    ]
    return '{"t_ns":%d,%s}\n' % (time.monotonic_ns(), ",".join(fields))
