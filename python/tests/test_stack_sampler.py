"""The background thread: what it finds in lines of the program's source, and its signals; without torch."""

import functools
import os
import signal
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim")
sys.path.insert(0, SHIM)

from _unidle_shim.facts import module_methods, stack_sampler  # noqa: E402
from _unidle_shim.host import threads  # noqa: E402
from _unidle_shim.loop.loop import AFTER_FORWARD, TRAIN_PHASE  # noqa: E402


def least_s(line):
    """Processor time of one search, the minimum of a few."""
    times = []
    for _ in range(5):
        begin = time.process_time()
        stack_sampler._READS.search(line)
        times.append(time.process_time() - begin)
    return min(times)


class Pace(unittest.TestCase):
    """How often it looks, with a clock of the test's own."""

    @staticmethod
    def pauses(cost_s, at_first_s, seconds):
        """The pause in each second of a run, where a look takes `cost_s`, and the first one more."""
        background = stack_sampler.Background(None)
        background.busy_s, pause, pauses = at_first_s, 1 / stack_sampler._RATE_HZ, []
        for second in range(1, seconds + 1):
            background.busy_s += cost_s / pause
            pause = background._paced(pause, second)
            pauses.append(pause)
        return background, pauses

    def test_a_cheap_look_is_never_thinned(self):
        background, pauses = self.pauses(0.00008, 0.01, 60)
        self.assertEqual(set(pauses), {0.05})
        self.assertFalse(background.thinned)

    def test_an_expensive_first_look_thins_only_for_a_while(self):
        background, pauses = self.pauses(0.00005, 0.06, 60)
        self.assertEqual(max(pauses), 0.2)
        self.assertEqual(pauses[-1], 0.05)
        self.assertTrue(background.thinned)

    def test_looks_that_are_always_expensive_stay_within_their_share(self):
        background, pauses = self.pauses(0.0003, 0.0, 200)
        self.assertLess(background.busy_s, 0.02 + 1.2 * stack_sampler._MAX_BUSY * 200)
        _, pauses = self.pauses(0.01, 0.0, 200)
        self.assertEqual(set(pauses[5:]), {0.2})  # looks at least five times a second


class Reads(unittest.TestCase):
    def test_lines_that_read(self):
        for line in (
            "x, y = images[k], labels[k]",
            "x = rows[order[k]]",
            "x = np.load (name)",
            "i = torch.randint(9, (4,))",
        ):
            self.assertTrue(stack_sampler._READS.search(line), line)
        for line in ("loss.backward()", "x = []", "# already (done)", "x = a * b"):
            self.assertFalse(stack_sampler._READS.search(line), line)

    def test_a_file_that_is_written_is_no_input(self):
        for text, reads in (
            ("with open(os.path.join(folder, 'log'), 'a') as log:", False),
            ('log = open("log.txt", mode="wb")', False),
            ("rows = open(name).readlines()", True),
            ("rows = open(name, 'rb')", True),
        ):
            self.assertEqual(stack_sampler._is_read(stack_sampler._FETCHES, text), reads, text)

    def test_lines_after_the_optimiser_that_fetch_the_next_batch(self):
        for line in ("x = next(batches)", "x, y = get_batch('train')", "x = loader.next_batch()"):
            self.assertTrue(stack_sampler._FETCHES.search(line), line)
        for line in ("score = ranks[order[k]]", "a = np.stack(found)", "r.integers(0, 9)"):
            self.assertFalse(stack_sampler._FETCHES.search(line), line)

    def test_lines_that_follow_the_optimiser_in_the_function_that_calls_it(self):
        class Loop:
            after, step_places = stack_sampler.AFTER_STEP, {}

            class parts:
                optimizers = (7,)

        def metric():
            stack = threads.stack_of(threading.get_ident())
            return stack_sampler.Background._follows_optimizer(Loop, stack)

        for _ in range(2):
            before = metric()
            Loop.step_places = {7: stack_sampler.places.lines_of_stack(sys._getframe())}
            self.assertEqual((before, metric()), (False, True))

    def test_calls_of_torch_distributed_are_exchange(self):
        phases = []

        def act():
            phases.append(stack_sampler._phase_between(threads.stack_of(threading.get_ident())))

        act()
        own = os.path.join("site-packages", "torch", "distributed", "distributed_c10d.py")
        exec(compile("act()", own, "exec"), {"act": act})
        self.assertEqual(phases, [stack_sampler.BETWEEN, stack_sampler.EXCHANGE])

    def test_validation_is_what_calls_the_model(self):
        def code(name, *path):
            return (compile("def %s(): pass" % name, os.path.join(os.sep, *path), "exec").co_consts[0], 1)

        call = code("_call_impl", "torch", "nn", "modules", "module.py")
        layer, model, test = (code(name, "app", "a.py") for name in ("layer", "forward", "test"))
        self.assertEqual(stack_sampler._outside_of_modules([layer, call, model, call, test]), [test])
        self.assertEqual(stack_sampler._outside_of_modules([model, test]), [model, test])

    def test_a_closure_is_not_the_optimisers_work(self):
        def code(name, *path):
            return (compile("def %s(): pass" % name, os.path.join(os.sep, *path), "exec").co_consts[0], 1)

        step = code("step", "torch", "optim", "adam.py")
        hook = code("wrapper", "torch", "optim", "optimizer.py")
        foreach = code("group", "torch", "utils", "foreach.py")
        own_step, metric = code("step", "app", "sam.py"), code("metric", "app", "train.py")
        model, framework = code("forward", "app", "net.py"), code("wrap", "lightning", "pytorch", "loop.py")
        loop = types.SimpleNamespace(step_places={})
        background = stack_sampler.Background(types.SimpleNamespace(loop=loop))
        for within in ((step,), (foreach, step), (own_step, hook), (model, framework, step)):
            self.assertEqual(background._work_of([*within, metric]), TRAIN_PHASE, within)
        for within in ((metric, step), (metric, framework, step)):
            self.assertIsNone(background._work_of([*within, metric]), within)

    def test_long_lines_cost_what_each_character_costs(self):
        for part in ("[", "read", "read ", " "):
            few, many = (least_s(part * times) for times in (4000, 64000))
            self.assertLess(many, 100 * max(few, 1e-5), "{!r}: 16 is linear, 256 quadratic".format(part))


class Claims:
    """Answers to every question, and remembers who has asked."""

    asked = []

    def __getattribute__(self, name):
        Claims.asked.append(name)
        return type


class Kind(type):
    def __getattribute__(cls, name):
        Claims.asked.append(name)
        return super().__getattribute__(name)

    def __eq__(cls, other):
        Claims.asked.append("==")
        return cls is other

    __hash__ = type.__hash__


class Methods(unittest.TestCase):
    def test_a_look_runs_no_code_of_the_program(self):
        class Layer:
            pass

        def decorator(function):
            return functools.wraps(function)(lambda *args: function(*args))

        class Net(Layer, metaclass=Kind):
            lazy = Claims()

            @decorator
            def sample(self):
                pass

        module = types.ModuleType("program")
        module.__file__, module.Net, module.claims = "/program.py", Net, Claims()
        torch = types.SimpleNamespace(nn=types.SimpleNamespace(Module=Layer))
        code = compile("def sample(): pass", "/program.py", "exec").co_consts[0]
        vars(Net)["sample"].__wrapped__.__code__ = code
        modules = {"torch": torch, "program": module, "claims": Claims()}
        with unittest.mock.patch.dict(sys.modules, modules):
            Claims.asked.clear()
            methods = module_methods.ModuleMethods()
            found = methods.has(code), methods.has(threading.Thread.run.__code__)
            self.assertEqual((*found, Claims.asked), (True, False, []))
            self.assertIn("program", methods.by_file.values(), "a module itself would be kept alive")

    def test_torchs_own_methods_are_no_work_of_the_model(self):
        def method(*path):
            return compile("def own(self): pass", os.path.join(os.sep, *path), "exec").co_consts[0]

        class Module:
            pass

        torch = types.SimpleNamespace(nn=types.SimpleNamespace(Module=Module))
        for own, path in (
            (False, ("torch", "nn", "modules", "module.py")),  # state_dict(), parameters(), zero_grad()
            (False, ("torch", "nn", "modules", "container.py")),
            (True, ("torch", "nn", "modules", "rnn.py")),
            (True, ("app", "module.py")),
        ):
            code = method(*path)
            module = types.ModuleType("package")
            module.__file__ = code.co_filename
            module.Net = type("Net", (Module,), {"own": types.FunctionType(code, {})})
            with unittest.mock.patch.dict(sys.modules, {"torch": torch, "package": module}):
                self.assertIs(module_methods.ModuleMethods().has(code), own, path)
                background = stack_sampler.Background(
                    types.SimpleNamespace(loop=types.SimpleNamespace(step_places={}))
                )
                self.assertEqual(background._work_of([(code, 1)]), TRAIN_PHASE if own else None, path)


class Held(unittest.TestCase):
    def test_looks_count_where_the_lock_is_not_known(self):
        counted, model = [], types.SimpleNamespace(model_ref=lambda: "model")
        background = stack_sampler.Background(types.SimpleNamespace(facts=model, thread=1))
        background.python_loops.count = lambda stack, held, *rest: counted.append(held)
        background.prompt = types.SimpleNamespace(cpu_of_others=lambda thread: 0)
        background.others = (0, 0)
        for background.held in (None, True, False):
            background._count_loops([], None, 0)
        self.assertEqual(counted, [None, True, False])


class Gaps(unittest.TestCase):
    def share_of(self, reading):
        """The share of input in a gap of which `reading` of five samples were at a line that reads."""
        loop = types.SimpleNamespace(
            parts=types.SimpleNamespace(fetches=0, optimizers=()),
            marking=None,
            inside=False,
            in_optimizer=0,
            phase=TRAIN_PHASE,
            validation=None,
            after=AFTER_FORWARD,
            gap_is_input=[None, None, None],
        )
        background = stack_sampler.Background(types.SimpleNamespace(loop=loop, role="trainer"))
        with tempfile.NamedTemporaryFile("w", suffix=".py") as source:
            source.write("x = np.load(name)\nloss = a * b\n")
            source.flush()
            for number in range(5):
                self.assertIsNone(loop.gap_is_input[AFTER_FORWARD], "too few samples")
                background._judge_gap(loop, source.name, 1 if number < reading else 2, False)
        return loop.gap_is_input[AFTER_FORWARD]

    def test_a_gap_is_input_where_most_of_its_lines_read(self):
        self.assertEqual([self.share_of(reading) for reading in range(6)], [0, 0, 0, 0.6, 0.8, 1])


class Threads(unittest.TestCase):
    def test_signals_are_blocked_in_the_new_thread_only(self):
        before, seen, done = signal.pthread_sigmask(signal.SIG_BLOCK, ()), [], threading.Event()

        def run():
            seen.extend(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
            done.set()

        threads.start_thread(run)
        self.assertEqual(signal.pthread_sigmask(signal.SIG_BLOCK, ()), before)
        self.assertTrue(done.wait(60))
        self.assertLessEqual({signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM}, set(seen))
        self.assertNotIn(signal.SIGSEGV, seen)


if __name__ == "__main__":
    unittest.main()
