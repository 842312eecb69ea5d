"""Runs programs of programs/entries.py and programs/asked.py in forks of this process, with a fault in one
entry of the shim each time; see test_guard.py.

    injection.py PROGRAM...     prints JSON: the result of each program bare, if the shim is absent; if it is
                                present, also the result with each fault (none with UNIDLE_FAULTS=0), and the
                                entries that it reaches. UNIDLE_FAULTS_DONE names places of earlier faults,
                                UNIDLE_FAULTS_IN the only folders and files whose entries get one

torch is imported once, so that hundreds of runs take no longer than a minute or two. A fault is raised by a
trace function, as if the line itself had raised it: at the first line of an entry, and at the last one.
"""

import ast
import atexit
import gc
import json
import os
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
SHIM = os.path.join(HERE, "..", "shim", "_unidle_shim")
MARK = "<frozen importlib._bootstrap unidle"
SHORT = (
    "import _unidle_shim.loop.own_cost as w; w._SHORT_NS = 0; w._OFTEN = w._SELDOM = 4; w._MAX_SHARE = 1e-3"
)


class Injected(Exception):
    pass


def entries():
    """{(file, line of the first statement): (line of the last one, function)} of each `try` whose failure is
    passed to `caught`."""
    found = {}
    for folder, _, names in sorted(os.walk(SHIM)):
        for name in sorted(names):
            if not name.endswith(".py"):
                continue
            path = os.path.join(folder, name)
            with open(path) as file:
                for function, node in _tries(ast.parse(file.read()), ""):
                    if any(_is_guard(handler) for handler in node.handlers):
                        place = os.path.relpath(path, SHIM), _first_line(node.body)
                        found[place] = _last_line(node.body), function
    return found


def _tries(node, function):
    """(function, `try`) for all of them; nested functions as outer.inner."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Try):
            yield function, inner
        named = isinstance(inner, (ast.FunctionDef, ast.ClassDef))
        yield from _tries(inner, (function + "." + inner.name).strip(".") if named else function)


def _is_guard(handler):
    return any(
        isinstance(node, ast.Call)
        and "caught" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
        for node in ast.walk(handler)
    )


def _first_line(body):
    return body[0].lineno


def _last_line(body):
    """The line of the `try` body's last statement, which a run reaches if it reaches the end."""
    last = body[-1]
    while isinstance(last, (ast.If, ast.With)) and not getattr(last, "orelse", None):
        last = last.body[-1]
    return last.lineno


def traced(on_line):
    """Calls on_line(file, line) in each frame of the shim."""

    def local(frame, event, arg):
        if event == "line":
            name, line = frame.f_code.co_filename, frame.f_lineno
            del frame  # otherwise this looks like a signal handler, which receives the interrupted frame
            on_line(name[len(MARK) + 1 : -1], line)
        return local

    def trace(frame, event, arg, mark=MARK):  # MARK is None when the interpreter ends
        return local if frame.f_code.co_filename.startswith(mark) else None

    threading.settrace(trace)
    sys.settrace(trace)


class Runner:
    def __init__(self, folder):
        self.folder = folder
        self.bare = "_unidle_shim" not in sys.modules

    def run(self, program, prepare=None, whole_end=True):
        """(exit status, output) of the program in a fork. `whole_end`: the interpreter ends as after a
        program."""
        path = os.path.join(self.folder, "output")
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.argv = [program]
            from programs import asked, entries

            # A fork leaves torch's threads behind. The first user makes new ones; two at once (the program
            # and its backward pass) end the process.
            entries.torch.set_num_threads(entries.torch.get_num_threads())
            if not self.bare:
                exec(SHORT)
            if prepare is not None:
                prepare()
            (getattr(entries, program, None) or getattr(asked, program))()
            if whole_end:
                raise _Done
            _end()
        status = os.waitpid(child, 0)[1]
        with open(path, errors="replace") as file:
            return status, file.read()

    def reached(self, program, known):
        """The result of the unchanged program, and which lines of `known` it reaches."""
        path = os.path.join(self.folder, "lines")
        open(path, "w").close()

        def prepare():
            seen, log = set(), os.open(path, os.O_WRONLY | os.O_APPEND)

            def on_line(name, line):
                if (name, line) in known and (name, line) not in seen:
                    seen.add((name, line))
                    os.write(log, ("%s:%d\n" % (name, line)).encode())

            traced(on_line)

        result = self.run(program, prepare)
        with open(path) as file:
            return result, {(line.split(":")[0], int(line.split(":")[1])) for line in file.read().split()}

    def injected(self, program, place, whole_end):
        def prepare():
            def on_line(name, line):
                if (name, line) == place:
                    raise Injected("injected at %s:%d" % (name, line))

            traced(on_line)

        return self.run(program, prepare, whole_end)


def _end():
    """The parts of the interpreter's end in which code of the program's or ours runs. Destroying torch's
    modules afterwards takes three times as long as the programs do."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class _Done(Exception):
    """Raised in a fork: the interpreter ends as after a program."""


def main(names):
    import programs.asked  # noqa: F401 - and torch with it
    import torch._dynamo  # the first optimiser would import it in each fork

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # a fork that collects garbage, or ends, must not traverse all of torch
    known = entries()
    functions = {"%s:%d" % entry: function for entry, (_, function) in known.items()}
    runner, told = Runner(tempfile.mkdtemp()), {"programs": {}, "faults": [], "entries": functions}
    lines = set(known) | {(name, last) for (name, _), (last, _) in known.items()}
    done = set(os.environ.get("UNIDLE_FAULTS_DONE", "").split())
    wanted = tuple(os.environ.get("UNIDLE_FAULTS_IN", "").split()) or ("",)
    for program in names:
        if runner.bare or os.environ.get("UNIDLE_FAULTS") == "0":
            told["programs"][program] = runner.run(program)
            continue
        result, seen = runner.reached(program, lines)
        told["programs"][program] = result
        whole_end = True  # once with a fault, too
        for entry in sorted(one for one in set(known) & seen if one[0].startswith(wanted)):
            for place in {entry, (entry[0], known[entry][0])} & seen:
                if "%s:%d" % place not in done:
                    done.add("%s:%d" % place)
                    given = runner.injected(program, place, whole_end)
                    told["faults"].append(("%s:%d" % entry, "%s:%d" % place, program) + given)
                    whole_end = False
    print(json.dumps(told))


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    try:
        main(sys.argv[1:])
    except _Done:
        pass
