"""In trials: protects the user's files from being overwritten, renamed or removed by the program.

The program may write checkpoints and logs to fixed places, where the user's own lie. In a trial such a write
goes to a file in the trial's own folder instead, and the program finds it there when it reads it.
Only torch.save and Python's own calls are redirected; what a library in C or another program writes is not.
"""

import builtins
import io
import os
import shutil
import stat
import time

from _unidle_shim.host.guard import caught
from _unidle_shim.host.hidden_frames import wraps
from _unidle_shim.host.whose import pass_on

CANNOT_PROTECT = 70  # exit code of a trial whose files can no longer be told from the user's
_SINCE = "UNIDLE_SCRATCH_SINCE"  # ns; for all processes of a trial
_COARSE_NS = 20_000_000  # files have the time of the kernel's last tick
_MOST_COPIED = 64 << 20  # a larger one that is opened for changes is most likely data that is only read


class Aside:
    """Where what the program writes goes, by what it asks for. What was there before `since_ns` is the
    user's."""

    def __init__(self, own, since_ns):
        self.own, self.since_ns = os.path.realpath(own), since_ns
        self.moved = {}  # real path -> where it is
        self.names = set()  # last parts of these
        self.new = set()  # real paths of files that were not there before

    def place(self, path, keep=False):
        """Where to write instead; with `keep` its content is there already."""
        real = os.path.realpath(os.fsdecode(path))
        if real in self.moved:
            return self.moved[real]
        if not self._is_users(real):
            self.new.add(real)
            return path
        folder = os.path.join(self.own, "saved")
        os.makedirs(folder, exist_ok=True)
        there = os.path.join(folder, "%d-%d-%s" % (os.getpid(), len(self.moved), os.path.basename(real)))
        if keep:
            shutil.copyfile(real, there)
        self.moved[real] = there
        self.names.add(os.path.basename(real))
        return there

    def found(self, path):
        if not self.moved or os.path.basename(os.fsdecode(path)) not in self.names:
            return path
        return self.moved.get(os.path.realpath(os.fsdecode(path)), path)

    def is_users(self, path):
        return self._is_users(os.path.realpath(os.fsdecode(path)))

    def has_users(self, folder):
        return any(
            self.is_users(os.path.join(at, name))
            for at, _, names in os.walk(os.fsdecode(folder))
            for name in names
        )

    def _is_users(self, real):
        if real.startswith(self.own + os.sep) or real in self.new:
            return False
        try:
            status = os.stat(real)
        except OSError:
            return False  # there is none
        return stat.S_ISREG(status.st_mode) and status.st_size > 0 and status.st_ctime_ns < self.since_ns


def _is_path(f):
    """One that a file may have; what is none is for the program's call to refuse."""
    try:
        return isinstance(f, (str, bytes, os.PathLike)) and "\0" not in os.fsdecode(f)
    except Exception as failure:  # of the program's own class
        pass_on(failure)
        return False


def _decided(question, *words):
    """Which files the program's call is to have. Where that cannot be said, the trial ends: its own call may
    write over a file of the user's."""
    try:
        return question(*words)
    except BaseException as failure:
        caught(failure)
    os.write(2, b"unidle: the trial ends: what it writes can no longer be kept from your files\n")
    os._exit(CANNOT_PROTECT)


def install(state, own):
    since_ns = int(os.environ.setdefault(_SINCE, str(time.time_ns() - _COARSE_NS)))
    aside = Aside(own, since_ns)
    torch, load = state.torch, state.torch.load

    @wraps(load)
    def loaded(f, *args, **kwargs):
        return load(_decided(_found, aside, f), *args, **kwargs)

    def redirected(args, kwargs):
        return _decided(_saved, aside, args, kwargs)

    state.redirect_save, torch.load = redirected, loaded
    builtins.open = io.open = _opening(aside, io.open)
    for name in ("replace", "rename"):  # written under another name first, to be whole or not there
        setattr(os, name, _renaming(aside, getattr(os, name)))
    for name in ("remove", "unlink"):
        setattr(os, name, _removing(aside, getattr(os, name)))
    shutil.rmtree = _removing_all(aside, shutil.rmtree)


def _found(aside, f):
    return aside.found(f) if _is_path(f) else f


def _saved(aside, args, kwargs):
    """Arguments of torch.save(obj, f, ...)."""
    if len(args) > 1 and _is_path(args[1]):
        args = (args[0], aside.place(args[1])) + tuple(args[2:])
    elif _is_path(kwargs.get("f")):
        kwargs = dict(kwargs, f=aside.place(kwargs["f"]))
    return args, kwargs


def _opening(aside, original):
    @wraps(original)
    def open(file, mode="r", *args, **kwargs):
        return original(_decided(_opened, aside, file, mode), mode, *args, **kwargs)

    return open


def _opened(aside, file, mode):
    if not _is_path(file) or not isinstance(mode, str):
        return file
    if "w" in mode:
        return aside.place(file)
    if "a" not in mode and "+" not in mode:
        return aside.found(file)
    small = not os.path.isfile(file) or os.path.getsize(file) <= _MOST_COPIED
    if small or "a" in mode:
        return aside.place(file, keep=small)
    return file


def _renaming(aside, original):
    @wraps(original)
    def moved(src, dst, **kwargs):
        source, target = _decided(_renamed, aside, src, dst, kwargs)
        if target is not None:
            original(source, target, **kwargs)

    return moved


def _renamed(aside, src, dst, kwargs):
    """From where to where; to None if all is done."""
    if kwargs or not _is_path(src) or not _is_path(dst) or not os.path.isfile(src):
        return src, dst
    users = aside.is_users(src)
    source, target = aside.found(src), aside.place(dst)
    if users:  # a log that is put by before a new one is begun
        shutil.copyfile(source, target)
        return None, None
    return source, target


def _removing(aside, original):
    @wraps(original)
    def removed(path, **kwargs):
        if kwargs or not _is_path(path) or not _decided(aside.is_users, path):
            original(path, **kwargs)

    return removed


def _removing_all(aside, original):
    @wraps(original)
    def rmtree(path, *args, **kwargs):
        if not _is_path(path) or not _decided(aside.has_users, path):
            original(path, *args, **kwargs)

    return rmtree
