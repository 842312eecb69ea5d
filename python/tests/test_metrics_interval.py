"""metrics.interval at run time: values that are logged arrive later, and are what they would have been."""

import copy
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

import run_case

sys.path.insert(0, os.path.join(os.path.dirname(run_case.HERE), "shim"))

from _unidle_shim.knobs import metrics_interval
from _unidle_shim.source import only_logged  # noqa: E402

PROGRAM = os.path.join(run_case.HERE, "programs", "reads.py")


def on_its_way(queue, value, arrived=False):
    return queue.put(lambda: value, lambda: arrived)


class LaterTest(unittest.TestCase):
    def setUp(self):
        self.queue = metrics_interval.Queue()
        self.queue.most = 1000

    def waiting(self):
        return len(self.queue.waiting)

    def test_sums_wait_for_nothing_and_are_the_same_to_the_bit(self):
        values = [0.1 * i + 1e-9 for i in range(50)]
        later = plain = 0.0
        for value in values:
            later += on_its_way(self.queue, value) * 3 / 7 - 0.3
            plain += value * 3 / 7 - 0.3
        self.assertEqual(self.waiting(), 5 * len(values))
        self.assertEqual(float(later).hex(), plain.hex())
        self.assertEqual(self.waiting(), 0)

    def test_it_is_what_a_float_is(self):
        def later():
            return on_its_way(self.queue, 2.5)

        self.assertEqual("%.2f %s %r %d" % (later(), later(), later(), later()), "2.50 2.5 2.5 2")
        self.assertEqual(f"{later():8.3f} {later()}", f"{2.5:8.3f} {2.5}")
        self.assertTrue(
            later() > 2 and later() == 2.5 and 3 > later() and bool(later()) and later() != later() + 1
        )
        self.assertEqual(
            (
                round(later(), 0),
                int(later()),
                -later(),
                abs(later()),
                later() ** 2,
                2 ** later(),
                later() % 2,
                later() // 1,
            ),
            (2.0, 2, -2.5, 2.5, 6.25, 2**2.5, 0.5, 2.0),
        )
        self.assertEqual(
            (math.exp(later()), max(later(), 1), sum([later(), later()]), 1 / later(), later() / later()),
            (math.exp(2.5), 2.5, 5.0, 0.4, 1.0),
        )
        self.assertEqual((later().is_integer(), hash(later()), {later(): 1}[2.5]), (False, hash(2.5), 1))
        for made in (copy.deepcopy(later()), pickle.loads(pickle.dumps(later()))):
            self.assertIs(type(made), float)
        count = on_its_way(self.queue, 7)
        self.assertEqual(
            (
                "%d %s %r" % (count, count, count + 1),
                f"{count:04d}",
                "abcdefgh"[count],
                count / 2,
                count // 2,
                int(count),
            ),
            ("7 7 8", "0007", "h", 3.5, 3, 7),
        )
        self.assertIs(type(copy.copy(count)), int)
        with self.assertRaises(TypeError):
            "abc"[later()]
        with self.assertRaises(ZeroDivisionError):
            later() / 0
        with self.assertRaises(TypeError):
            later() + "text"
        with self.assertRaises(TypeError):
            json.dumps(later())  # loud, and the reason why only what is logged is served so

    @unittest.skipUnless(run_case.HAS_TORCH, "there is no torch")
    def test_arrays_and_tensors_take_it(self):
        import numpy
        import torch

        made = numpy.array([on_its_way(self.queue, 2.5), on_its_way(self.queue, 1.5)])
        self.assertEqual((made.dtype, made.tolist()), (numpy.float64, [2.5, 1.5]))
        self.assertEqual(numpy.mean([on_its_way(self.queue, 2.0), 4.0]), 3.0)
        self.assertEqual((torch.ones(1) * on_its_way(self.queue, 2.5)).tolist(), [2.5])

    def test_what_arrived_is_taken_and_the_oldest_waited_for_beyond_the_limit(self):
        self.queue.most = 2
        first = on_its_way(self.queue, 1.0, arrived=True) + 1
        on_its_way(self.queue, 2.0)
        self.queue.collect()
        self.assertEqual((first._value, self.queue.copies), (2.0, 1))
        on_its_way(self.queue, 3.0)
        self.queue.collect()
        self.assertEqual(self.queue.copies, 1)

    def test_a_device_that_fails_fails_where_the_value_is_used(self):
        def fails():
            raise RuntimeError("the device is lost")

        number = self.queue.put(fails, lambda: False)
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "lost"):
                float(number)

    def test_any_thread_may_read(self):
        numbers = [on_its_way(self.queue, float(i)) + 1 for i in range(2000)]
        seen = [[] for _ in range(4)]
        threads = [threading.Thread(target=lambda out=out: out.extend(map(float, numbers))) for out in seen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(seen, [[i + 1.0 for i in range(2000)]] * 4)


class FakeTorch:
    """Writes down what is asked of CUDA, in order."""

    def __init__(self):
        said = self.said = []

        class TensorBase:
            def __init__(self, device, value):
                self.device, self.value = device, value

            def detach(self):
                return self

            def to(self, device, non_blocking=False):
                said.append("copy from %s%s" % (self.device, "" if non_blocking else ", waiting"))
                return Tensor(device, self.value)

            def item(self):
                said.append("read on %s" % self.device)
                return self.value

        class Tensor(TensorBase):
            pass

        class Event:
            made = 0

            def __init__(self):
                Event.made += 1
                self.name = "event %d" % Event.made

            def record(self, stream):
                said.append("record %s in %s" % (self.name, stream))

            def synchronize(self):
                said.append("wait for %s" % self.name)

        class Cuda:
            @staticmethod
            def current_stream(device):
                return "stream of %s" % device

        self.Tensor, self.cuda = Tensor, Cuda
        Cuda.Event = Event


class CudaCopiesTest(unittest.TestCase):
    def test_the_event_lies_behind_the_copy_and_is_waited_for_before_the_value_is_read(self):
        torch = FakeTorch()
        copies = metrics_interval.CudaCopies(torch)
        copy = copies.begin(torch.Tensor("cuda:0", 1.5))
        self.assertEqual(torch.said, ["copy from cuda:0", "record event 1 in stream of cuda:0"])
        self.assertEqual(copies.end(*copy), 1.5)
        self.assertEqual(torch.said[2:], ["wait for event 1", "read on cpu"])

    def test_events_are_used_again_on_their_own_device(self):
        torch = FakeTorch()
        copies = metrics_interval.CudaCopies(torch)
        copies.end(*copies.begin(torch.Tensor("cuda:0", 1.0)))
        copies.end(*copies.begin(torch.Tensor("cuda:1", 1.0)))
        copies.end(*copies.begin(torch.Tensor("cuda:0", 1.0)))
        self.assertEqual(
            [line for line in torch.said if line.startswith("record")],
            [
                "record event 1 in stream of cuda:0",
                "record event 2 in stream of cuda:1",
                "record event 1 in stream of cuda:0",
            ],
        )


# What the program does, and where it is left alone a part of the reason.
LOGGED = {
    "summed and printed": "total = 0\nfor i in range(2):\n    total += value.item() * 4\n"
    "print('%.3f' % (total / 2))",
    "formatted later": "last = value.item()\nx = 1\nprint(f'{last:.4f}')",
    "a progress bar": "last = value.item()\nbar.set_postfix({'loss': last})\n"
    "bar.set_description('loss {:.3f}'.format(last))",
    "two at once": "a, b = 0.0, 0\na += value.item()\nprint('mean %.3f of %d' % (a / 2, b))",
    "a list": "seen = []\nseen.append(value.item())\nprint(sum(seen) / len(seen), np.mean(seen[-10:]))",
    "returned": "def step():\n    return value.item()\ntotal = 0.0\ntotal += step()\nprint(total)",
    "returned with more": "def step():\n    loss = value.item()\n    return loss, 3\n"
    "a, b = step()\nif b == 3:\n    print(a)",
    "a variable of its name": "def step():\n    return value.item()\n"
    "def other(step):\n    return step > 2\ntotal = 0.0\ntotal += step()\nprint(total)",
    "a method": "class A:\n    def one_pass(self):\n        return value.item()\n"
    "last = A().one_pass()\nprint(last)",
    "another of that name": "def other():\n    last = 1\n    return last > 2\n"
    "last = value.item()\nother()\nprint(last)",
    "beside all options": "class A: pass\nif False:\n    print(vars(A))\nlast = value.item()\nprint(last)",
    "to a power": "total = 0.\ntotal += value.item()\nprint('perplexity', math.exp(total / 4))",
}
NOT = {
    "compared": ("last = value.item()\nif last > 3:\n    raise SystemExit", "decides by it"),
    "a condition": ("last = value.item()\nprint(last)\nwhile last:\n    break", "decides by it"),
    "the best": ("best = 9.0\nbest = min(best, value.item())\nx = 1 if best < 2 else 2", "decides by it"),
    "handed on": ("last = value.item()\nscheduler.step(last)", "more than log it"),
    "an attribute": ("class A: pass\na = A()\na.loss = value.item()", "more than log it"),
    "saved": ("last = value.item()\ntorch.save({'loss': last}, path)", "more than log it"),
    "a list that goes on": ("seen = []\nseen.append(value.item())\njson.dumps(seen)", "more than log it"),
    "a list of others": ("seen = other\nseen.append(value.item())\nprint(sum(seen))", "more than log it"),
    "added to a tensor": ("total = torch.zeros(1)\ntotal += value.item()\nprint(total)", "more than log it"),
    "printed there": ("print(value.item())", "used where it is read"),
    "own print": ("def print(x):\n    return x > 1\nlast = value.item()\nprint(last)", "more than log it"),
    "returned and compared": (
        "def step():\n    return value.item()\nif step() > 2:\n    x = 1",
        "decides by it",
    ),
    "a method handed on": (
        "class A:\n    def step(self):\n        return value.item()\na = A()\nkept = a.step\na.step()",
        "more than log it",
    ),
    "a function handed on": (
        "def step():\n    return value.item()\nkept = [step]\nstep()",
        "more than log it",
    ),
    "a closure compares": (
        "last = value.item()\ndef stop():\n    return last > 2\nprint(last)",
        "decides by it",
    ),
    "a parameter": (
        "def add(total):\n    total += value.item()\n    print(total)\nadd(0.0)",
        "more than log it",
    ),
    "a library gets it": (
        "import string\nclass Words(string.Formatter):\n"
        "    def get_value(self, key, args, kwargs):\n        return value.item()\n"
        "Words().format('{0}', 1)\nWords().get_value(1, 2, 3)",
        "library gets it",
    ),
    "own logger": (
        "class Log:\n    def info(self, value):\n        self.value = value\n"
        "last = value.item()\nLog().info(last)",
        "more than log it",
    ),
    "a record for a logger": ("last = value.item()\nlog.info({'loss': last})", "more than log it"),
    "any name": ("last = value.item()\nprint(last)\nlocals()", "locals is called"),
    "a global": (
        "def step():\n    global last\n    last = value.item()\ndef stop():\n    return last > 2\nstep()",
        "decides by it",
    ),
}


class Value:
    def item(self):
        self.why = only_logged.why_not(sys._getframe(1))
        raise StopIteration


class MerelyLoggedTest(unittest.TestCase):
    maxDiff = None

    def why_not(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w") as out:
                out.write(text)
            value = Value()
            with self.assertRaises(StopIteration):
                exec(compile(text, path, "exec"), {"value": value, "other": [], "torch": torch_of_zeros})
        return value.why

    def test_what_is_logged(self):
        for what, text in LOGGED.items():
            with self.subTest(what):
                self.assertIsNone(self.why_not(text))

    def test_what_is_not(self):
        for what, (text, why) in NOT.items():
            with self.subTest(what):
                self.assertIn(why, self.why_not(text) or "it is served")

    def test_without_source_it_is_left_alone(self):
        value = Value()
        with self.assertRaises(StopIteration):
            exec("last = value.item()", {"value": value})
        self.assertIn("source", value.why)


class torch_of_zeros:
    zeros = staticmethod(lambda count: [0] * count)


@unittest.skipUnless(run_case.HAS_TORCH, "there is no torch")
class ReadsTest(run_case.RunCase):
    fresh = True

    def applied(self, *words, interval=50):
        done = self.observed(
            sys.executable,
            PROGRAM,
            *words,
            options=["--apply", "metrics.interval=%d" % interval],
            UNIDLE_ASSUME_DEVICE="1",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([note for note in self.record.notes("shim") if note["status"] == "off"], [])
        self.said = [(note["status"], note["why"] or "") for note in self.record.notes("apply")]
        return done

    def bare(self, *words):
        return subprocess.run(
            [sys.executable, PROGRAM, *words], capture_output=True, text=True, check=True
        ).stdout

    def counts(self, done):
        words = done.stderr.split("came later ")[1].split()
        return int(words[0].rstrip(",")), int(words[3])

    def test_the_program_prints_what_it_would_print(self):
        for how, reads, printed in (("summed", 90, 12), ("listed", 180, 3)):
            with self.subTest(how):
                done = self.applied(how)
                self.assertEqual(done.stdout, self.bare(how))
                self.assertEqual(self.said, [("taken", "")])
                later, waited = self.counts(done)
                self.assertEqual(later, reads)
                self.assertLessEqual(waited, 3 * printed)  # what was on its way when something was printed
                self.assertEqual(self.record.settings()["metrics.interval"], "50")
                self.assertEqual(self.record.one("select count(*) from steps where loss is not null"), 90)

    def test_no_value_is_older_than_the_interval(self):
        later, waited = self.counts(self.applied("summed", interval=2))
        self.assertEqual(later, 90)
        self.assertGreater(waited, 80)  # copies arrive after three more

    def test_what_decides_something_is_left_alone(self):
        for how, why in (("decides", "decides by it"), ("at_once", "used where it is read")):
            with self.subTest(how):
                done = self.applied(how)
                self.assertEqual(done.stdout, self.bare(how))
                self.assertEqual(self.counts(done), (0, 0))
                self.assertEqual([status for status, _ in self.said], ["refused-in-part"], self.said)
                self.assertIn(why, self.said[0][1])

    def test_on_a_cpu_there_is_nothing_to_serve(self):
        done = self.observed(sys.executable, PROGRAM, "summed", options=["--apply", "metrics.interval=50"])
        self.assertEqual(done.stdout, self.bare("summed"))
        if not os.path.exists("/dev/nvidiactl"):
            self.assertEqual(
                [(note["status"], note["why"]) for note in self.record.notes("apply")],
                [("ignored", "on a CPU nothing is waited for")],
            )

    @unittest.skipUnless(os.path.exists("/dev/nvidiactl"), "needs a GPU")
    def test_on_a_gpu_the_program_prints_what_it_would_print(self):
        for how in ("summed", "listed"):
            self.assertEqual(self.applied(how, "cuda").stdout, self.bare(how, "cuda"))
            self.assertEqual(self.said, [("taken", "")])


if __name__ == "__main__":
    unittest.main()
