"""What is measured on a GPU: the cost of observing, the workload `superres` beside its Python peer, and what
`unidle monitor` reads beside nvidia-smi. Each takes the suite and adds one result."""

import concurrent.futures
import contextlib
import json
import os
import shutil
import statistics
import time

import known

HERE = os.path.dirname(os.path.abspath(__file__))
PAIRS = 5
MOST_OVERHEAD = 1.05  # what no pair may be above
WATCHED_S = 5
MOST_POINTS = 0.03  # between what we say of a device's time and what a profiler saw
CONVOLVES = """
import sys, torch
torch.nn.Conv2d(3, 3, 3).to(sys.argv[1])(torch.zeros(1, 3, 8, 8).to(sys.argv[1])).sum().item()
"""
CLOSE = {"utilisation": 0.15, "memory_bytes": 0.05, "power_w": 0.15}  # share of 1, of theirs, of theirs


def overhead(suite):
    """One program bare and observed, in pairs whose order alternates; each tells the time of its own loop."""
    program = os.path.join(HERE, "programs", "paced.py")

    def took(observed, number):
        command = [suite.python, program]
        if observed:
            record = os.path.join(suite.out, "paced-%d.rec" % number)
            shutil.rmtree(record, ignore_errors=True)
            command = [suite.unidle, "run", "-o", record, "--"] + command
        code, text, error, _ = suite.run(*command)
        words = text.split()
        if isinstance(code, str):
            raise TimeoutError(code)
        if code != 0 or "seconds" not in words:
            raise RuntimeError("exit %s: %s" % (code, error.strip()[-200:]))
        return float(words[words.index("seconds") + 1])

    ratios = []
    try:
        for number in range(PAIRS):
            seconds = {}
            for observed in (False, True) if number % 2 == 0 else (True, False):
                seconds[observed] = took(observed, number)
            ratios.append(seconds[True] / seconds[False])
    except RuntimeError as failure:
        suite.add("overhead", "fails", why=str(failure))
        return
    except TimeoutError as cut:
        if not ratios:
            why = "no time left for a pair: it %s" % cut
            suite.add("overhead", "skipped", why=why, lacked_time=True)
            return
    middle = statistics.median(ratios)
    suite.add(
        "overhead",
        "fails" if min(ratios) > MOST_OVERHEAD else "holds",
        why="every pair is above %.2f" % MOST_OVERHEAD if min(ratios) > MOST_OVERHEAD else "",
        said="observed %.3f of bare, %.3f to %.3f in %d pairs"
        % (middle, min(ratios), max(ratios), len(ratios)),
        ratios=ratios,
    )


def superres(suite, root, device="cuda", samples=960):
    """The engine's naive and tuned configurations, and the Python peer's, on the same pictures. `root` has
    the folders workloads/ and bench/."""
    code, _, error, _ = suite.run(suite.python, "-c", CONVOLVES, device)
    if code != 0:
        suite.add(
            "superres", "skipped", why="no convolutions here, exit %s: %s" % (code, known.last_line(error))
        )
        return
    data = os.path.join(suite.out, "superres-data")
    given = ["data.folder=" + data, "train.samples=%d" % samples, "device=" + device]

    def engine(mode, *more):
        config = os.path.join(root, "workloads", "superres", mode + ".yaml")
        return suite.run(suite.unidle, "train", config, *given, *more, patience=300)

    def peer(mode):
        program = os.path.join(root, "bench", "peers", "superres.py")
        options = ["--mode", mode, "--data", data, "--samples", str(samples), "--device", device]
        return suite.run(suite.python, program, *options, patience=300)

    code, _, error, _ = engine("naive", "--prepare")
    if code == 3:
        suite.add("superres", "skipped", why=known.last_line(error))
        return
    rates, psnr, wrong = {}, {}, [] if code == 0 else [known.last_line(error)]
    for name, run in (
        ("naive", lambda: engine("naive", "--format", "json", "-q")),
        ("tuned", lambda: engine("tuned", "--format", "json", "-q")),
        ("Python naive", lambda: peer("naive")),
        ("Python tuned", lambda: peer("tuned")),
    ):
        code, text, error, _ = run() if not wrong else (1, "", "", 0)
        if code != 0:
            wrong.append("%s: exit %s: %s" % (name, code, known.last_line(error)))
            break
        told = json.loads(text.strip().splitlines()[-1])
        rates[name], psnr[name] = told["samples_per_s"], told["metric"]["psnr"]
    if not wrong and rates["tuned"] < rates["naive"]:
        wrong.append("tuned is slower than naive")
    suite.add(
        "superres",
        "fails" if wrong else "holds",
        why="; ".join(wrong),
        said=", ".join("%s %.0f samples/s (%.2f dB)" % (name, rates[name], psnr[name]) for name in rates),
        samples_per_s=rates,
        psnr=psnr,
    )


def idle_beside_profiler(suite):
    """How busy the diagnosis of loader_bound says that the device is, and PyTorch's own profiler of the same
    loop."""
    told = next((one.get("diagnosis") for one in suite.results if one["name"] == "loader_bound"), None)
    ours = ((told or {}).get("device") or {}).get("busy")
    if ours is None:
        suite.add("loader-idle", "skipped", why="loader_bound was not diagnosed")
        return
    code, text, error, _ = suite.run(
        suite.python, os.path.join(HERE, "programs", "loader_idle.py"), environment=known.length()
    )
    if code != 0 or "skipped" in text:
        why = text.strip() if code == 0 else "exit %s: %s" % (code, known.last_line(error))
        suite.add("loader-idle", "skipped" if code == 0 else "fails", why=why)
        return
    theirs = float(text.split()[-1])
    far = abs(ours - theirs) > MOST_POINTS
    suite.add(
        "loader-idle",
        "fails" if far else "holds",
        why="more than %.0f points from the profiler" % (100 * MOST_POINTS) if far else "",
        said="busy %.4f, by the profiler %.4f" % (ours, theirs),
    )


def monitor_beside_smi(suite):
    """The first device's utilisation, memory and power while a program computes, by both at the same time."""
    columns = "utilization.gpu,memory.used,power.draw"
    watch = ["nvidia-smi", "-i", "0", "--query-gpu=" + columns, "--format=csv,noheader,nounits"]
    if suite.run(*watch, patience=30)[0] != 0:
        suite.add("monitor-smi", "skipped", why="nvidia-smi is not there")
        return
    begun = os.path.join(suite.out, "busy-has-begun")
    if os.path.exists(begun):
        os.remove(begun)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        load = pool.submit(suite.run, suite.python, os.path.join(HERE, "programs", "busy.py"), "60", begun)
        while not os.path.exists(begun) and not load.done():
            time.sleep(0.05)
        smi = pool.submit(
            suite.run, *watch, "-lms", "200", patience=WATCHED_S
        )  # it goes on until it is ended
        code, text, error, _ = suite.run(
            suite.unidle, "monitor", "--seconds", str(WATCHED_S), "--format", "json", patience=60
        )
        theirs = means(smi.result()[1])
        with contextlib.suppress(FileNotFoundError):
            os.remove(begun)  # ends the load, which was there for both to the end
        loaded = load.result()
    ours = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if loaded[0] != 0 or code != 0 or not ours or not ours[-1].get("gpus"):
        why = "busy.py: exit %s; monitor: exit %s: %s" % (
            loaded[0],
            code,
            known.last_line(loaded[2] or error),
        )
        suite.add("monitor-smi", "fails", why=why)
        return
    compare(suite, ours[-1]["gpus"][0], theirs)


def means(text):
    """Of what nvidia-smi told line by line: utilisation 0..1, bytes, W; None where it tells none."""
    rows = [line.split(",") for line in text.splitlines()]
    found = {}
    for at, (name, scale) in enumerate((("utilisation", 0.01), ("memory_bytes", 1 << 20), ("power_w", 1))):
        values = [number(row[at]) for row in rows if len(row) == 3]
        values = [value for value in values if value is not None]
        found[name] = statistics.mean(values) * scale if values else None
    return found


def compare(suite, ours, theirs):
    wrong, said = [], []
    for name, allowed in CLOSE.items():
        mine, other = (ours.get(name) or {}).get("mean"), theirs[name]
        if mine is None or other is None:
            said.append("%s: not told by %s" % (name, "us" if mine is None else "nvidia-smi"))
            continue
        said.append("%s %.4g, nvidia-smi %.4g" % (name, mine, other))
        if abs(mine - other) > allowed * (1 if name == "utilisation" else other):
            wrong.append(name)
    suite.add(
        "monitor-smi",
        "fails" if wrong else "holds",
        why="far from nvidia-smi: " + ", ".join(wrong) if wrong else "",
        said="; ".join(said),
    )


def number(text):
    try:
        return float(text)
    except ValueError:
        return None  # [N/A]
