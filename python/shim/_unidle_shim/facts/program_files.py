"""A digest of the program's files, by which two runs of the same program are recognised."""

import hashlib
import os
import sys

from _unidle_shim.host import places
from _unidle_shim.host.exception_origin import pass_on

_MOST_FILES = 1000
_MOST_BYTES = 4 << 20  # of one file

_known = 0, None  # the number of modules, and what was found among them
_words = {word for word in sys.argv if type(word) is str}  # of the command; the program may change them
_digests = {}  # path -> digest when it was first read, usually soon after it was imported


def note():
    """Returns None if a file could not be read. The digest leaves out the names of the files, so that a copy
    of the program in another folder has the same one."""
    global _known
    if _known[0] != len(sys.modules):
        _known = len(sys.modules), _found()
    return _known[1]


def _found():
    names = _modules() | _named_in_command()
    if not names or len(names) > _MOST_FILES:
        return None
    paths = {os.path.realpath(places.full(name)) for name in names}  # the program may change its folder
    found = [_digest_of(path) for path in paths]
    if None in found:
        return None
    whole = hashlib.sha256("".join(sorted(found)).encode()).hexdigest()
    return {"type": "program", "files": len(found), "digest": whole}


def _modules():
    modules = list(sys.modules.values())
    files = {vars(module).get("__file__") for module in modules if type(module) is type(sys)}
    return {file for file in files if type(file) is str and file.endswith(".py") and places.is_own_file(file)}


def _named_in_command():
    """Small files, which are scripts and configurations rather than data."""
    _words.update(word for word in sys.argv if type(word) is str)
    words = _words | {word.partition("=")[2] for word in _words}
    files = {places.full(word) for word in words if word}
    return {file for file in files if os.path.isfile(file) and os.path.getsize(file) <= _MOST_BYTES}


def _digest_of(path):
    if path not in _digests:
        _digests[path] = None
        try:
            if os.path.isfile(path) and os.path.getsize(path) <= _MOST_BYTES:
                with open(path, "rb") as file:
                    _digests[path] = hashlib.sha256(file.read()).hexdigest()
        except OSError as failure:
            pass_on(failure)
    return _digests[path]
