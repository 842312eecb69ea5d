"""The engine compared with torch at its best on a GPU, at sizes that load a GPU.

Each way of running PyTorch is a process that compiles and warms up in parallel with the others, and then
waits; the engine's packages are compiled meanwhile. After that they are measured one at a time. Each
figure is printed at once, and a way that fails loses only its own figure.

"""

import concurrent.futures
import contextlib
import datetime
import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from common.workload_runs import ROOT, config_of, prepare, training

# Ways of PyTorch: those with a short warm-up first. graph: torch.cuda.graph around the whole step.
WAYS = ["eager", "graph", "max-autotune", "reduce-overhead", "default"]
MODES = ["off", "graph", "fused", "auto"]  # compile.mode of the engine
AT_ONCE = max(4, len(os.sched_getaffinity(0)))  # programs that warm up in parallel
WARM_UP_STEPS = 100
WARM_S = 300  # time for all ways to compile and warm up
PATIENCE_S = 60  # time limit of an engine run
PEERS = os.path.join(ROOT, "bench", "peers")
KEEP_FEATURES = """
import sys
sys.path.insert(0, sys.argv[1])
import protein
parts = (protein.read_peptides(sys.argv[2], name) for name in ("train", "validation"))
protein.kept_features(sys.argv[2], sum(parts, []))
"""


@dataclass
class Case:
    """A workload at the size used for the comparison: the same for both sides."""

    batch: int
    precisions: list  # the most informative one first
    engine: list = field(default_factory=list)
    peer: list = field(default_factory=list)
    prepare: list = field(default_factory=list)
    naive_steps: int = 20
    naive_batch: int = 0  # for slow samples: a smaller batch shows the same


def width(model, depth=None):
    sizes = {"width": model, "depth": depth}
    return {
        "engine": [f"model.{name}={size}" for name, size in sizes.items() if size],
        "peer": [word for name, size in sizes.items() if size for word in (f"--{name}", str(size))],
    }


CASES = {
    "superres": Case(32, ["bf16", "fp32"], **width(128, 8)),
    "timeseries": Case(128, ["fp32", "bf16"]),
    "protein": Case(64, ["bf16", "fp32"], **width(512, 8), prepare=["prepare.samples=128"], naive_batch=8),
    "keypoint": Case(16, ["bf16", "fp32"], prepare=["prepare.samples=256"]),
    "recsys": Case(64, ["fp32", "bf16"], prepare=["prepare.samples=100000"]),
}


def workers():
    return max(1, min(6, len(os.sched_getaffinity(0)) // 2))


def amp(precision):
    return "off" if precision == "fp32" else precision


# -- data --


def write_sources(folder):
    """Generates data of the same shape, for workloads whose source package is missing."""
    draws = random.Random(4)
    with open(os.path.join(folder, "daily.csv"), "w") as file:
        print("date,precipitation,temp_max,temp_min,wind,weather", file=file)
        for day in range(1461):
            date = datetime.date(2012, 1, 1) + datetime.timedelta(days=day)
            warm, wind, sky = (
                12 + 9 * draws.random(),
                5 * draws.random(),
                draws.choice(["sun", "rain", "fog"]),
            )
            print(f"{date},{draws.random():.2f},{warm:.2f},{warm - 8:.2f},{wind:.2f},{sky}", file=file)
    with open(os.path.join(folder, "peptides.txt"), "w") as file:
        for _ in range(1024):
            print("".join(draws.choices("ACDEFGHIKLMNPQRSTVWY", k=draws.randint(10, 50))), file=file)
    return {
        "timeseries": ["prepare.source=" + os.path.join(folder, "daily.csv")],
        "protein": ["prepare.source=" + os.path.join(folder, "peptides.txt")],
    }


class Plan:
    """The data of a comparison, and the commands of both sides."""

    def __init__(self, folder, trainer, device, prepared=None):
        self.folder, self.trainer, self.device, self.prepared = folder, trainer, device, prepared
        self.environment = dict(
            os.environ,
            UNIDLE_HOME=os.path.join(folder, "home"),
            UNIDLE_PYTHON=os.environ.get("UNIDLE_PYTHON", sys.executable),
            TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "inductor"),
            TRITON_CACHE_DIR=os.path.join(folder, "triton"),
            TORCHINDUCTOR_COMPILE_THREADS="4",
            OMP_NUM_THREADS="4",
        )

    def data(self, workload):
        return os.path.join(self.folder, "data", workload)

    def prepare(self, workload, sources):
        settings = [f"data.folder={self.data(workload)}", f"cache.folder={self.folder}/cache", "device=cpu"]
        settings += [f"prepare.samples={self.prepared}"] if self.prepared else CASES[workload].prepare
        try:
            prepare(config_of(workload), *settings, trainer=self.trainer)
        except subprocess.CalledProcessError:
            prepare(config_of(workload), *settings, *sources.get(workload, []), trainer=self.trainer)
        if workload == "protein":  # the peer's own cache, shared by its ways
            subprocess.run([sys.executable, "-c", KEEP_FEATURES, PEERS, self.data(workload)], check=True)

    def peer(self, workload, way, precision, seconds):
        case = CASES[workload]
        program = os.path.join(PEERS, workload + ".py")
        words = ["--mode", "tuned", "--data", self.data(workload), "--device", self.device]
        words += [
            "--batch",
            str(case.batch),
            "--amp",
            amp(precision),
            *case.peer,
            "--workers",
            str(workers()),
        ]
        words += ["--samples", "1000000000", "--warmup-samples", str(WARM_UP_STEPS * case.batch)]
        words += ["--seconds", str(seconds), "--pause"] + (["--compile", way] if way != "eager" else [])
        words += ["--accumulation", "1"] if workload != "superres" else []
        return [sys.executable, program, *words]

    def engine(self, workload, samples, *more, config="tuned.yaml"):
        case = CASES[workload]
        settings = [f"data.folder={self.data(workload)}", f"cache.folder={self.folder}/cache"]
        settings += [f"device={self.device}", f"batch.size={case.batch}", *case.engine]
        settings += [f"train.samples={samples}", f"train.warmup_samples={WARM_UP_STEPS * case.batch}"]
        settings += ["batch.accumulation=1", "validation.interval=0"]
        if config == "tuned.yaml":
            settings += [f"loader.workers={workers()}"] if workload not in ("timeseries", "recsys") else []
            settings += [f"data.group={case.batch}"] if workload == "protein" else []
        return training(config_of(workload, config), *settings, *more, trainer=self.trainer)


# -- the two sides --


class Way:
    """A way of PyTorch: a process that has warmed up and waits for the signal to continue."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines, self.errors = queue.Queue(), []
        for pipe, take in ((self.process.stdout, self.lines.put), (self.process.stderr, self.errors.append)):
            threading.Thread(target=self.follow, args=(pipe, take), daemon=True).start()

    def follow(self, pipe, take):
        for line in pipe:
            take(line)
        take("")

    def said(self, patience):
        try:
            line = self.lines.get(timeout=patience)
        except queue.Empty:
            self.end()
            raise RuntimeError(f"said nothing in {patience:.0f} s") from None
        if not line:
            self.process.wait()
            raise RuntimeError(last_error("".join(self.errors)) or f"exit code {self.process.returncode}")
        return line

    def rate(self, patience):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.said(patience))["samples_per_s"]

    def end(self):
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()


def last_error(text):
    lines = [line for line in text.strip().splitlines() if line]
    errors = [line for line in lines if "Error" in line.split(":")[0]]
    return (errors or lines or [""])[-1][:300]


def answer_of(command, environment, patience):
    """Returns its output. On a time-out, ends it with its child processes, such as compilers."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environment, process_group=0, **pipes)
    try:
        text, error = process.communicate(timeout=max(0.1, patience))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if not text.strip():
        raise RuntimeError(last_error(error) or f"exit code {process.returncode}")
    return text, error


def engine_rates(plan, workload, samples, modes, precisions, patience=PATIENCE_S):
    """Returns {(mode, precision): samples/s, what is in force and loss, or the error}, all in one process."""
    grid = ["--grid", "compile.mode=" + ",".join(modes)]
    grid += ["--grid", "precision.amp=" + ",".join(amp(one) for one in precisions)]
    command = plan.engine(workload, samples, *grid)
    text, said = answer_of(command, plan.environment, patience)
    whys = [line for line in said.splitlines() if "is off" in line]
    found = {}
    for one in json.loads(text)["runs"]:
        if one.get("effective", {}).get("compile.mode") != one["settings"]["compile.mode"]:
            one["why"] = "; ".join(whys)[:600]
        precision = "fp32" if one["settings"]["precision.amp"] == "off" else one["settings"]["precision.amp"]
        found[one["settings"]["compile.mode"], precision] = one
    return found


# -- the comparison --


class Comparison:
    """Runs warm-up and measurement of the workloads; calls `tell(row)` for each figure at once."""

    def __init__(self, plan, workloads, tell, seconds=1.5, ways=WAYS, modes=MODES, precisions=None):
        self.plan, self.workloads, self.tell, self.seconds = plan, workloads, tell, seconds
        self.ways, self.modes = ways, modes
        self.precisions = {one: CASES[one].precisions[:precisions] for one in workloads}
        self.warm = {}  # (workload, way, precision): Way, or the error
        self.slow = set()  # workloads whose packages are not compiled

    def prepare(self):
        sources = write_sources(self.plan.folder)

        def made(workload):
            try:
                self.plan.prepare(workload, sources)
            except subprocess.CalledProcessError as failure:
                return f"its data cannot be made: exit code {failure.returncode}"
            return None

        with concurrent.futures.ThreadPoolExecutor() as pool:
            faults = dict(zip(self.workloads, pool.map(made, self.workloads)))
        for workload, fault in faults.items():
            if fault:
                self.tell({"workload": workload, "error": fault})
        self.workloads = [workload for workload, fault in faults.items() if not fault]

    def warm_up(self, seconds=WARM_S):
        """Starts all ways, several in parallel. Drops those not warm in time."""
        self.warm_by = time.monotonic() + seconds
        wanted = [
            (workload, way, precision)
            for way in self.ways
            for workload in self.workloads
            for precision in self.precisions[workload]
        ]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            compiled = [
                pool.submit(self.compile_engine, one) for one in self.workloads if "fused" in self.modes
            ]
            for name, way in zip(wanted, pool.map(self.start, wanted)):
                self.warm[name] = way
            for one in compiled:
                one.result()

    def start(self, name):
        workload, way, precision = name
        if self.left() <= 0:
            return "was not begun: no time left"
        begun = Way(self.plan.peer(workload, way, precision, self.seconds), self.plan.environment)
        try:
            begun.said(self.left())
        except RuntimeError as failure:
            return str(failure)
        return begun

    def left(self):
        return self.warm_by - time.monotonic()

    def compile_engine(self, workload):
        """Does one-time work ahead of the measurement. What takes too long here is not measured."""
        samples = (WARM_UP_STEPS + 10) * CASES[workload].batch
        try:
            engine_rates(self.plan, workload, samples, ["fused"], self.precisions[workload], self.left())
        except subprocess.TimeoutExpired:
            self.slow.add(workload)
        except (RuntimeError, ValueError):
            pass  # the measurement reports it

    def measure(self, workload):
        """Reports the figures of both sides, and the best of one side relative to the best of the other."""
        best = {}
        for way in self.ways:
            for precision in self.precisions[workload]:
                self.measure_way(workload, way, precision, best)
        rate = best.get("PyTorch", (0,))[0]
        samples = CASES[workload].batch * WARM_UP_STEPS + int(
            max(rate * self.seconds, CASES[workload].batch * 20)
        )
        for (mode, precision), one in self.engine(workload, samples).items():
            row = {"workload": workload, "side": "unidle", "way": mode, "precision": precision}
            if "samples_per_s" in one:
                in_force = one["effective"].get("compile.mode")
                row |= self.steps(workload, one["samples_per_s"]) | {
                    "in_force": in_force,
                    "loss": one["loss_last"],
                }
                best["unidle"] = max(best.get("unidle", (0,)), (one["samples_per_s"], mode, precision))
            self.tell(row | {key: one[key] for key in ("error", "why") if key in one})
        if len(best) == 2:
            ours, theirs = best["unidle"], best["PyTorch"]
            named = {"ours": " ".join(ours[1:]), "theirs": " ".join(theirs[1:])}
            self.tell({"workload": workload, "ratio": ours[0] / theirs[0], **named})

    def engine(self, workload, samples):
        """Returns the result of engine_rates; runs one mode at a time when all together fail."""
        precisions, found, wanted = self.precisions[workload], {}, self.modes
        if workload in self.slow:
            wanted = [mode for mode in self.modes if mode != "fused"]
            found = {("fused", one): {"error": "was not compiled in time"} for one in precisions}
        for modes in [wanted, *([one] for one in wanted)]:
            try:
                found |= engine_rates(self.plan, workload, samples, modes, precisions)
            except (RuntimeError, ValueError, subprocess.TimeoutExpired) as failure:
                if len(modes) == 1:
                    found |= {(modes[0], one): {"error": str(failure)[:300]} for one in precisions}
            if len(found) == len(self.modes) * len(precisions):
                break
        return found

    def measure_way(self, workload, way, precision, best):
        row = {"workload": workload, "side": "PyTorch", "way": way, "precision": precision}
        warm = self.warm.get((workload, way, precision), "was not begun")
        try:
            if isinstance(warm, str):
                raise RuntimeError(warm)
            rate = warm.rate(self.seconds + 60)
        except (RuntimeError, OSError, ValueError) as failure:
            self.tell(row | {"error": str(failure)})
            return
        finally:
            if isinstance(warm, Way):
                warm.end()
        best["PyTorch"] = max(best.get("PyTorch", (0,)), (rate, way, precision))
        self.tell(row | self.steps(workload, rate))

    def naive(self, workload):
        """Measures the engine with the guide's settings, at the same batch size."""
        case = CASES[workload]
        warm = max(1, case.naive_steps // 4)
        batch = case.naive_batch or case.batch
        more = ["precision.amp=off", f"batch.size={batch}", f"train.warmup_samples={warm * batch}"]
        command = self.plan.engine(workload, case.naive_steps * batch, *more, config="naive.yaml")
        row = {"workload": workload, "side": "unidle", "way": "naive.yaml", "precision": "fp32"}
        try:
            told = json.loads(answer_of(command, self.plan.environment, PATIENCE_S)[0])
        except (RuntimeError, ValueError, subprocess.TimeoutExpired) as failure:
            self.tell(row | {"error": str(failure)[:300]})
            return
        self.tell(row | self.steps(workload, told["samples_per_s"]))

    def steps(self, workload, rate):
        return {"samples_per_s": rate, "step_ms": 1e3 * CASES[workload].batch / rate}

    def end(self):
        for way in self.warm.values():
            if isinstance(way, Way):
                way.end()
