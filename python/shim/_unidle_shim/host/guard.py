"""How a patch calls our code, so that our failures never reach the program and its exceptions always do.

A patch wraps a function of torch, of Python or of the program. It calls that function once, outside any `try`
of ours. Everything else that it does and that may fail is inside

    try:
        ...
    except BaseException as failure:
        caught(failure)

which is called an entry. A test finds all entries by that form, makes each fail in turn, and compares with
the bare program.
"""

import os
import sys

from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.notes import write_line

on = False  # this process is observed
failed = False  # our code has failed: nothing is changed for the program any more either


def off(reason):
    """Ends the observation of this process after a failure of ours. Safe to call from anywhere, any number of
    times."""
    global on, failed
    on = False
    if failed:
        return
    failed = True
    session = sys.modules.get("_unidle_shim.session")
    try:
        if session is not None:
            session.shut_down()
        import json

        write_line('"type":"shim","status":"off","reason":' + json.dumps(_in_words(reason)))
    except Exception as failure:
        pass_on(failure)


def _in_words(reason):
    """A text unchanged; for an exception, its message and the place that raised it."""
    if isinstance(reason, str):
        return reason
    import traceback

    text = "".join(traceback.format_exception_only(type(reason), reason)).strip()
    last = reason.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return text
    # Formatted by hand: the patched traceback module hides our frames.
    return "%s (%s:%d)" % (
        text,
        os.path.basename(last.tb_frame.f_code.co_filename).rstrip(">"),
        last.tb_lineno,
    )


def value_or_none(question, *asked):
    """Returns question(*asked), or None if it raises. The program's objects may reject a query, and a program
    may turn torch's warnings into errors. Then only the answer is missing and observation goes on."""
    try:
        return question(*asked)
    except Exception as failure:
        pass_on(failure)
        return None


def caught(failure):
    """For our `except` clauses. Ends the observation after a failure of ours, or of our queries to the
    program's objects. Re-raises an exception that only happened to arrive in our code, such as one from a
    signal handler. Returns None."""
    pass_on(failure)
    off(failure)
