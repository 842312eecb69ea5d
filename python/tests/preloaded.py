"""A Python that has already imported torch and forks for each program, so that tests do not wait for the
import repeatedly.

`python(environment)` returns the path of a command named python3 that replaces sys.executable. It sends its
arguments to a server, which forks. The fork takes over streams, folder, environment and process group,
imports sitecustomize according to the environment, and runs the program like `python`. A server serves one
environment of those variables that libraries read when they are loaded.

Differences from a fresh Python: parts of torch are loaded before the shim, the program is not a child of the
command, and its hash seed is the server's. Tests of the import, of processes and of their accounting use
sys.executable; test_run.py does so throughout.
"""

import atexit
import ctypes
import gc
import importlib
import importlib.machinery
import json
import os
import py_compile
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile

AT_LOADING = ("LD_PRELOAD", "OMP_NUM_THREADS", "KINETO_LOG_LEVEL")
_servers = {}  # values of AT_LOADING -> path of the command


def python(environment):
    key = tuple(environment.get(name) for name in AT_LOADING)
    if key not in _servers:
        _servers[key] = _start(dict(zip(AT_LOADING, key)))
    return _servers[key]


def _start(loading):
    folder = tempfile.mkdtemp()
    given = {name: value for name, value in loading.items() if value is not None}
    kept = {name: value for name, value in os.environ.items() if name not in (*AT_LOADING, "PYTHONPATH")}
    command = os.path.join(folder, "python3")
    ours, theirs = socket.socketpair()
    # Its frames, below those of each program, count as the interpreter's own, like those of `python -m`.
    program = py_compile.compile(__file__, os.path.join(folder, "server.pyc"), "<frozen runpy>", doraise=True)
    server = subprocess.Popen(
        [sys.executable, program, folder, str(theirs.fileno())],
        env=dict(kept, **given),
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
    )
    theirs.close()
    atexit.register(_stop, server, ours, folder)
    with open(command, "w") as file:
        file.write("#!%s -ISB\n" % sys.executable)
        file.write(_CLIENT % {"address": os.path.join(folder, "socket"), "python": sys.executable})
    os.chmod(command, 0o755)
    if ours.recv(1) != b"+":
        raise RuntimeError("the server of preloaded programs did not start")
    return command


def _stop(server, connection, folder):
    connection.close()  # which ends the server
    server.wait()
    shutil.rmtree(folder)


_CLIENT = """
import json, os, signal, socket, sys
PYTHON = %(python)r
if len(sys.argv) < 2 or (sys.argv[1].startswith("-") and sys.argv[1] != "-c"):
    os.execv(PYTHON, [PYTHON] + sys.argv[1:])  # options, modules and standard input are not forked
to = socket.socket(socket.AF_UNIX)
to.connect(%(address)r)
asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), os.getpgrp()]).encode()
fds = []
for stream in (0, 1, 2):
    try:
        os.fstat(stream)
    except OSError:
        os.execv(PYTHON, [PYTHON] + sys.argv[1:])
socket.send_fds(to, [b"%%10d" %% len(asked)], [0, 1, 2])
to.sendall(asked)
answers = to.makefile()
pid = int(answers.readline())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, lambda number, frame: os.kill(pid, number))
status = int(answers.readline() or 9)
if os.WIFSIGNALED(status):
    number = os.WTERMSIG(status)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
os._exit(os.WEXITSTATUS(status))
"""

# -- the server
# ------------------------------------------------------------------------------------------------------------


def serve(folder, parent):
    """Serves until the test's process closes its end."""
    import torch
    import torch._dynamo  # the first optimiser would import it in each fork

    del torch
    gc.collect()
    gc.freeze()  # a fork that collects garbage, or ends, must not touch all of torch
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(os.path.join(folder, "socket"))
    listening.listen()
    chosen = selectors.DefaultSelector()
    chosen.register(listening, selectors.EVENT_READ)
    chosen.register(parent, selectors.EVENT_READ)
    parent.send(b"+")
    while True:
        for key, _ in chosen.select():
            if key.fileobj is parent:
                return None
            if key.fileobj is not listening:
                _tell(chosen, *key.data)
                continue
            connection = listening.accept()[0]
            asked = _received(connection)
            if asked is None:
                connection.close()
                continue
            child = os.fork()
            if child == 0:
                chosen.close()
                for each in (listening, parent, connection):
                    each.close()
                return asked
            for stream in asked[1]:
                os.close(stream)
            connection.sendall(b"%d\n" % child)
            watched = os.pidfd_open(child)
            chosen.register(watched, selectors.EVENT_READ, (watched, child, connection))


def _received(connection):
    size, streams, _, _ = socket.recv_fds(connection, 10, 3)
    text, more = b"", size
    while more and len(text) < int(size):
        more = connection.recv(int(size) - len(text))
        text += more
    if not more:  # the client was killed
        for stream in streams:
            os.close(stream)
        return None
    return json.loads(text), streams


def _tell(chosen, watched, child, connection):
    status = os.waitpid(child, 0)[1]
    chosen.unregister(watched)
    os.close(watched)
    try:
        connection.sendall(b"%d\n" % status)
    except OSError:
        pass  # the client was killed
    connection.close()


class _Imported:
    """Finds the server's torch when the program imports it, so that the shim sees the import. Uses no name of
    this module, which belongs to the program by then."""

    def __init__(self, module):
        self._module, self._spec, self._finders = module, module.__spec__, sys.meta_path
        self._found = importlib.machinery.ModuleSpec("torch", self, origin=self._spec.origin, is_package=True)

    def find_spec(self, name, path=None, target=None):
        return self._found if name == "torch" else None

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        module.__spec__, module.__loader__ = self._spec, self._spec.loader
        self._finders.remove(self)


def become(asked, streams):
    """Turns this fork into what `python` is before it runs a program."""
    arguments, folder, environment, group = asked
    os.setpgid(0, group)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    path = [os.path.abspath(entry) for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = list(dict.fromkeys(path + sys.path[1:]))
    sys.argv[:] = ["-c", *arguments[2:]] if arguments[0] == "-c" else arguments
    sys.orig_argv[:] = [sys.executable, *arguments]
    importlib.invalidate_caches()
    sys.modules.pop("sitecustomize", None)
    # A fork leaves torch's threads behind. The first user makes new ones; two at once (the program and its
    # backward pass) end the process.
    torch = sys.modules["torch"]
    torch.set_num_threads(torch.get_num_threads())
    sys.meta_path.insert(0, _Imported(sys.modules.pop("torch")))
    sys.modules["numpy"].random.seed()
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as missing:
        if missing.name != "sitecustomize":
            raise
    return arguments


def run(arguments):
    """Runs its argument like the interpreter: tracebacks begin with the program, and sys.exit ends it."""
    api, libc, flags = ctypes.pythonapi, ctypes.CDLL(None), None
    libc.fopen.restype = ctypes.c_void_p
    if arguments[0] == "-c":
        sys.path.insert(0, "")
        text = arguments[1].encode() + b"\n"
        begin = lambda: api.PyRun_SimpleStringFlags(text, flags)  # noqa: E731
    else:
        name = os.path.abspath(arguments[0])
        sys.path.insert(0, os.path.dirname(name))
        file = ctypes.c_void_p(libc.fopen(name.encode(), b"rb"))
        begin = lambda: api.PyRun_AnyFileExFlags(file, name.encode(), 1, flags)  # noqa: E731
    main = sys.modules["__main__"].__dict__
    for each in set(main) - {"__name__", "__builtins__", "__loader__"}:
        del main[each]
    main.update(__doc__=None, __package__=None, __spec__=None)
    return begin()


if __name__ == "__main__":
    question = serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
    if question is not None:
        raise SystemExit(1 if run(become(*question)) else 0)
