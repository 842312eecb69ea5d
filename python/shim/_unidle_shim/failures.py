"""Exceptions that end the program, and exceptions that it prints and goes on from."""

import os
import sys

_seen = set()  # of exceptions that are noted already
_MAX_NOTES = 50
_MAX_TRACEBACK = 8000


def install_excepthook():
    previous = sys.excepthook

    def hook(kind, value, trace):
        from . import hiding, on

        try:
            if on:
                trace = hiding.strip(trace)
                if value is not None:
                    value = value.with_traceback(trace)
                note(kind, value, trace, caught=False)
        except BaseException:
            pass
        if previous is sys.__excepthook__:
            sys.__excepthook__(kind, value, trace)
        else:
            previous(kind, value, trace)

    sys.excepthook = hook


def traceback_imported(traceback):
    from . import hiding, places

    original = traceback.TracebackException.__init__

    @hiding.wraps(original)
    def init(self, exc_type, exc_value, exc_traceback, *args, **kwargs):
        if exc_traceback is not None:
            try:
                exc_traceback = hiding.strip(exc_traceback)
                if _asked_by_program(sys._getframe(1), places):
                    note(exc_type, exc_value, exc_traceback, caught=True)
            except BaseException:
                pass
        return original(self, exc_type, exc_value, exc_traceback, *args, **kwargs)

    traceback.TracebackException.__init__ = init


def _asked_by_program(frame, places):
    """The printing was asked for by the program's own code, by way of traceback and logging at most."""
    while frame is not None:
        name = os.path.basename(frame.f_code.co_filename)
        if places.is_own(frame.f_code):
            return True
        if name not in ("traceback.py", "__init__.py", "contextlib.py") and not frame.f_code.co_filename == places.MARK:
            return False
        if name == "__init__.py" and "logging" not in frame.f_code.co_filename:
            return False
        frame = frame.f_back
    return False


def note(kind, value, trace, caught):
    from . import on, places, write_line

    key = (id(value), caught)
    if not on or kind is None or key in _seen or (id(value), False) in _seen or len(_seen) >= _MAX_NOTES:
        return
    if issubclass(kind, (SystemExit, KeyboardInterrupt)) and kind is not KeyboardInterrupt:
        return
    _seen.add(key)
    import json
    import traceback

    where, at = None, trace
    while at is not None:
        if places.is_own(at.tb_frame.f_code):
            where = "%s:%d" % (places.short(at.tb_frame.f_code.co_filename), at.tb_lineno)
        at = at.tb_next
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else "%s.%s" % (kind.__module__, kind.__name__)
    lines = ["Traceback (most recent call last):\n"] + traceback.format_list(traceback.extract_tb(trace, limit=-40))
    lines += traceback.format_exception_only(kind, value)
    body = {
        "message": "%s: %s" % (name, str(value)[:2000]),
        "class": name,
        "where": where,
        "traceback": "".join(lines)[-_MAX_TRACEBACK:],
        "caught": caught,
    }
    write_line('"type":"exception",' + json.dumps(body, default=str)[1:-1])
