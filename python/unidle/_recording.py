"""Records a program that nobody started with `unidle run`: what unidle.observe() does.

The recorder is a process of its own, `unidle attach`, out of reach of this one's terminal. It is no child of
this one, unless this one adopts orphans: as process 1 of a container, or as a subreaper. It ends with this
process, however that ends. Nothing here raises: observing must not end a training.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from unidle._program import program
from unidle.errors import Error

_STARTS_S = 60.0  # a file system may be slow
_FAILED_S = 60.0  # how long other ranks do not try either
_ENDS_S = 30.0  # the longest that the end of the program waits for the record
_ENDED = "end.json"  # observe/attach.h
_NO_START = "the recorder does not start"


class Ranks(NamedTuple):
    """The processes of a job on this machine, which share a record."""

    key: str  # names the file by which they find it
    process: int  # the record ends with this one at the latest
    tree: int  # root of the processes that are recorded
    command: List[str]
    folder: Optional[str] = None  # where the record goes, as a program's own goes into its working folder
    count: int = 0  # the record ends with the last of so many; 0: only with `process`

    @property
    def file(self) -> str:
        return os.path.join(tempfile.gettempdir(), f"unidle-{os.getuid()}-{self.key}")


class Recording:
    """A record that is being written: `record` is its folder, `name` the same as the recorder calls it."""

    def __init__(self, started: dict, ranks: Optional[Ranks], changed: Callable[[], None]) -> None:
        environment = started["environment"]
        self.name, self._ranks = started["record"], ranks
        self.record = Path(self.name).absolute()
        self._folder = environment["UNIDLE_PROBE_DIR"]
        self._changed = changed
        self._process = os.getpid()
        self._set = environment
        self._before = {name: os.environ.get(name) for name in environment}
        self._shim_folder = environment["PYTHONPATH"].split(os.pathsep)[0]
        self._shim: Any = None
        os.environ.update(environment)  # for processes that this one starts

    def begin(self) -> None:
        self._changed()
        before = list(sys.path)
        sys.path.insert(0, self._shim_folder)
        try:
            self._shim = importlib.import_module("_unidle_shim")
        finally:
            sys.path[:] = before
        self._shim.attach()

    def is_here(self) -> bool:
        """False in a process forked since."""
        return self._process == os.getpid()

    def end(self, failure: Optional[BaseException] = None, of_process: bool = False) -> None:
        """Returns once the record is complete. `failure`: the exception that ended the observed part, or the
        process."""
        outcome = _outcome(failure)
        try:
            if self._shim is not None:
                self._shim.detach(failure if outcome == "failed" else None)
        finally:
            self._restore()
            self._changed()
            if self._ranks is None or _is_last(self._ranks, outcome == "failed"):
                self._tell(outcome, of_process and not isinstance(failure, KeyboardInterrupt))
                self._wait()

    def _restore(self) -> None:
        """Takes our variables out of the environment. What the program has changed since stays."""
        for name, before in self._before.items():
            now = os.environ.get(name)
            if now == self._set[name]:
                _set_variable(name, before)
            elif name == "PYTHONPATH" and now is not None:
                folders = now.split(os.pathsep)
                if self._shim_folder in folders:
                    folders.remove(self._shim_folder)
                    _set_variable(name, os.pathsep.join(folders) or None)

    def _tell(self, outcome: str, has_code: bool) -> None:
        body: dict = {"outcome": outcome}
        if outcome == "failed" and has_code:
            body["code"] = 1
        path = os.path.join(self._folder, _ENDED)
        with open(path + ".new", "w") as file:
            json.dump(body, file)
        os.rename(path + ".new", path)

    def _wait(self) -> None:
        until = time.monotonic() + _ENDS_S
        while _is_written(self._folder) and time.monotonic() < until:
            time.sleep(0.01)


def _outcome(failure: Optional[BaseException]) -> str:
    """A closed generator and sys.exit() are no failures; a cancelled task of asyncio was stopped."""
    if failure is None or isinstance(failure, (SystemExit, GeneratorExit)):
        return "completed"
    return "stopped" if type(failure).__name__ == "CancelledError" else "failed"


def _set_variable(name: str, value: Optional[str]) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _is_written(folder: str) -> bool:
    """The recorder holds a lock on the folder as long as it writes."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(handle)


_current: List[Recording] = []  # none or one
_latest: List[Path] = []  # the record of the newest one
_registered = _failed = False


def current() -> Optional[Recording]:
    """The recording of this process."""
    return _current[0] if _current and _current[0].is_here() else None


def latest() -> Optional[Path]:
    return _latest[-1] if _latest else None


def say(text: str) -> None:
    """One line on stderr, where the program's own warnings go. Without print(), which workers of Ray have
    replaced by one that writes twice."""
    try:
        sys.stderr.write(f"unidle: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # closed, or none
        pass


def begin(
    record: Optional[Any], changed: Callable[[], None], find_ranks: Callable[[], Optional[Ranks]]
) -> Optional[Recording]:
    """Begins recording, unless this program is recorded already, by `unidle run` for example. `changed` is
    called when recording has begun or ends."""
    global _registered, _failed
    if os.environ.get("UNIDLE_PROBE_DIR") or _failed:
        return current()
    try:
        ranks = find_ranks()
        started = _shared_recorder(record, ranks) if ranks else _start_recorder(record, _alone())
        recording = Recording(started, ranks, changed)
        _current[:] = [recording]
        _latest[:] = [recording.record]
        if not _registered:
            _registered = True
            atexit.register(_at_exit)  # first: what the observation itself registers runs before
        recording.begin()
    except Exception as failure:
        if _by_handler(failure):
            if _current:
                end(_current[0])
            raise
        say(f"{_in_one_line(failure)}; the program runs unobserved")
        if _current:
            end(_current[0])
        _failed = not _is_interactive()  # there, the next call may follow a correction
        return None
    if not started.get("joined"):
        say(f"recording {recording.name}; afterwards: unidle diagnose{_named(record, recording)}")
    return recording


def end(recording: Recording, failure: Optional[BaseException] = None, of_process: bool = False) -> None:
    if _current and _current[0] is recording:
        _current.clear()
    if not recording.is_here():
        return
    try:
        recording.end(failure, of_process)
    except Exception as problem:
        if _by_handler(problem):
            raise
        say(f"the record may be incomplete: {_in_one_line(problem)}")


def _by_handler(failure: BaseException) -> bool:
    """Whether a signal handler of the program raised it while our code ran. Python gives a handler the signal
    and the frame that it interrupted."""
    trace = failure.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount + 1]  # one more: *args
        given = [frame.f_locals.get(name) for name in names]
        given += [one for each in given if isinstance(each, tuple) for one in each]
        if frame.f_back is not None and any(one is frame.f_back for one in given):
            return True
        trace = trace.tb_next
    return False


def _at_exit() -> None:
    recording = current()
    if recording is None:
        return
    try:
        failure = None if _is_interactive() else getattr(sys, "last_value", None)
        end(recording, failure if isinstance(failure, BaseException) else None, of_process=True)
    except KeyboardInterrupt:  # whoever waits for the program does not want to wait for us
        pass


def _named(record: Optional[Any], recording: Recording) -> str:
    return f" {recording.name}" if record is not None else ""


def _start_recorder(record: Optional[Any], ranks: Ranks, *options: str) -> dict:
    """Returns what the recorder says: where the record is, and the environment of the processes in it."""
    words = [program(), "attach", "--pid", str(ranks.process), *options]
    if ranks.tree != ranks.process:
        words += ["--tree", str(ranks.tree)]
    if record is not None:
        words += ["--output", os.fspath(record)]
    elif _is_interactive():
        words += ["--name", _notebook()]
    out, problems = _answer([*words, "--", *ranks.command], ranks.folder)
    if not out:
        raise Error(problems[-1] if problems else _NO_START)
    return json.loads(out[-1])


def _answer(words: List[str], folder: Optional[str]) -> Tuple[List[str], List[str]]:
    """The lines on stdout and stderr of a program that goes on in the background. It is ended if it does not
    answer in time."""
    with subprocess.Popen(
        words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as started:
        try:
            answers = started.communicate(timeout=_STARTS_S)
        except BaseException as failure:
            _end_writers(started.stdout)
            started.kill()
            if isinstance(failure, subprocess.TimeoutExpired):
                raise Error(f"{_NO_START} within {_STARTS_S:g} s") from None
            raise
    out, problems = (answer.decode("utf-8", "replace").strip().splitlines() for answer in answers)
    return out, problems


def _end_writers(pipe: Any) -> None:
    """Ends the processes that have the pipe as their stdout. The recorder is one of them, and its number is
    unknown here: it is started by the process that we have started, which has ended."""
    ours = os.readlink(f"/proc/self/fd/{pipe.fileno()}")
    for process in filter(str.isdigit, os.listdir("/proc")):
        stdout = f"/proc/{process}/fd/1"
        try:
            if os.readlink(stdout) == ours and os.lstat(stdout).st_mode & stat.S_IWUSR:  # not its reader
                os.kill(int(process), signal.SIGKILL)
        except OSError:  # another user's, or ended
            pass


def ranks_of_launcher() -> Optional[Ranks]:
    """Those that torchrun started together with this process."""
    if os.environ.get("LOCAL_WORLD_SIZE", "1") == "1" or "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    launcher = os.getppid()
    command = Path(f"/proc/{launcher}/cmdline").read_text(errors="replace").rstrip("\0").split("\0")
    return Ranks(str(launcher), launcher, launcher, command)


def _alone() -> Ranks:
    return Ranks("", os.getpid(), os.getpid(), own_command())


def _shared_recorder(record: Optional[Any], ranks: Ranks) -> dict:
    """One recorder for all ranks of a job on this machine. The first one starts it."""
    handle = os.open(ranks.file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(handle, "r+") as file:
        if os.fstat(handle).st_uid != os.getuid():
            raise Error(f"{ranks.file}: belongs to another user")
        _lock(handle)  # until the file is closed
        known = _content(file)
        if known.get("failed") and time.time() - os.fstat(handle).st_mtime < _FAILED_S:
            raise Error(f"{_NO_START} for another rank")
        if "environment" in known and _is_written(known["environment"]["UNIDLE_PROBE_DIR"]):
            return dict(known, joined=True)
        try:
            started = _start_recorder(record, ranks, "--remove-at-end", ranks.file)
        except Exception:
            _replace(file, {"failed": True})  # the other ranks then fail at once
            raise
        started["record"] = os.path.abspath(os.path.join(ranks.folder or "", started["record"]))
        _replace(file, started)
    return started


def _is_last(ranks: Ranks, failed: bool) -> bool:
    """Whether the record ends with this rank: the last one to end, or the first one to fail, because the
    other ranks are stopped after a failure."""
    if not ranks.count:
        return False
    try:
        handle = os.open(ranks.file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:  # it has ended
        return False
    with open(handle, "r+") as file:
        _lock(handle)
        known = _content(file)
        before = known.get("ended", 0)
        known["ended"] = ranks.count if failed else before + 1
        _replace(file, known)
    return before < ranks.count <= known["ended"]


def _content(file: Any) -> dict:
    text = file.read()
    return json.loads(text) if text.endswith("}") else {}


def _lock(handle: int) -> None:
    until = time.monotonic() + _STARTS_S
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise Error(f"{_NO_START} for another rank") from None
        time.sleep(0.02)


def _replace(file: Any, content: dict) -> None:
    file.seek(0)
    file.truncate()
    json.dump(content, file)


def own_command() -> List[str]:
    words = getattr(sys, "orig_argv", None)  # since Python 3.10
    return list(words) if words else [sys.executable or "python", *sys.argv]


def _is_interactive() -> bool:
    """A notebook or an interactive Python, in which an exception does not end the program."""
    return hasattr(sys, "ps1") or "IPython" in sys.modules and _shell() is not None


def _shell() -> Any:
    return sys.modules["IPython"].get_ipython()


def _notebook() -> str:
    name = os.environ.get("JPY_SESSION_NAME", "")  # the notebook's path, with jupyter_server 2
    return Path(name).stem or "notebook"


def _in_one_line(failure: BaseException) -> str:
    text = " ".join(str(failure).split()) or type(failure).__name__
    return text[len("unidle: ") :] if text.startswith("unidle: ") else text
