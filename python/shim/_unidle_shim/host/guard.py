"""How a patch calls our code, so that our failures never reach the program and its exceptions always do.

A patch wraps a function of torch, of Python or of the program. It calls that function once, outside of any
`try` of ours. All that it does besides, and that may fail, lies within

    try:
        ...
    except BaseException as failure:
        caught(failure)

which is called an entry; a test finds all of them by that form, makes each fail in turn, and compares with
the bare program.
"""

import os
import sys

from _unidle_shim.host.exception_origin import pass_on
from _unidle_shim.host.notes import write_line

on = False  # this process is observed
failed = False  # something of ours went wrong: nothing is changed for the program any more either


def off(reason):
    """Our own failure: no more observation in this process. Safe to call from anywhere, as often as one
    likes."""
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
    """A text as it is; of an exception what it says, and the place that raised it."""
    if isinstance(reason, str):
        return reason
    import traceback

    text = "".join(traceback.format_exception_only(type(reason), reason)).strip()
    last = reason.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return text
    # By hand: what the module traceback tells the program has no frames of ours.
    return "%s (%s:%d)" % (
        text,
        os.path.basename(last.tb_frame.f_code.co_filename).rstrip(">"),
        last.tb_lineno,
    )


def value_or_none(question, *asked):
    """What question(*asked) returns; None when it raises. The program's objects may refuse a question, and a
    program may turn torch's warnings into errors. Only the answer is missing then: observation goes on."""
    try:
        return question(*asked)
    except Exception as failure:
        pass_on(failure)
        return None


def caught(failure):
    """To be called from an `except` clause of ours. A failure of ours, or of what we asked the program's
    objects, ends the observation. What arrived in our code by chance, an exception of a signal handler for
    one, is raised on. Returns None."""
    pass_on(failure)
    off(failure)
